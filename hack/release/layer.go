package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layerOf returns the files of a directory as a layer.
func layerOf(dir string) (v1.Layer, error) {
	open := func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { w.CloseWithError(writeTar(w, dir)) }()
		return r, nil
	}
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}

// writeTar writes what is in a directory, in the order of names. Owners, times and the umask of the
// machine leave no trace, so that equal files give equal bytes.
func writeTar(out io.Writer, dir string) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return writeEntry(w, path, filepath.ToSlash(name), entry)
	})
	if err != nil {
		return fmt.Errorf("write the layer of %s: %w", dir, err)
	}
	return w.Close()
}

func writeEntry(w *tar.Writer, path, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	header := tar.Header{Name: name, Mode: 0o644, ModTime: time.Unix(0, 0)}
	switch {
	case info.IsDir():
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, name+"/", 0o755
	case info.Mode()&fs.ModeSymlink != 0:
		header.Typeflag, header.Mode = tar.TypeSymlink, 0o777
		if header.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
		if info.Mode()&0o100 != 0 {
			header.Mode = 0o755
		}
	default:
		return fmt.Errorf("%s is neither a file, a directory nor a symbolic link", path)
	}
	if err := w.WriteHeader(&header); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	return writeContent(w, path)
}

func writeContent(w io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(w, file)
	return err
}
