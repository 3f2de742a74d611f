package shell

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

const (
	// deepest is how far a walk goes down. It has two files open for each directory on its way; a
	// pod can nest 100,000 of them.
	deepest = 50
	// listed is how many names of a directory are read at a time.
	listed = 256
)

// walk deletes what is in one directory, which a pod may change at any moment: between two steps it
// replaces a directory by a link to that of all volumes, and a walk by paths goes on in there. Here each step names one entry of a directory that is open: os.Root
// opens each part of a path by openat with O_NOFOLLOW (rootOpenDir in os/root_unix.go), follows a
// link itself, never out of the Root (doInRoot in os/root_openat.go), and deletes by unlinkat,
// which follows none (removeat). So no step leaves the directory, whatever is swapped when; what a
// link leads to in it is to be deleted anyway.
//
// Root.RemoveAll is as safe, but has a file open for each level, enters mount points, and has no
// end while a pod goes on writing.
type walk struct {
	top     *os.Root
	dir     string // its path, for messages
	removed int
	moved   int
	first   error
	// listed is called, if it is not nil, with the path of a directory between its listing and the
	// descent into what it lists: a test changes the directory there, as a pod may.
	listed func(path string)
}

// clear deletes what is in a directory, at a path below the top, as far as one listing shows it.
func (w *walk) clear(dir *os.Root, path string, depth int) {
	if isSubvolume(dir, ".") {
		makeWritable(dir)
	}
	list, err := dir.Open(".")
	if err != nil {
		w.failed(path, err)
		return
	}
	defer list.Close()
	for err == nil {
		var names []string
		names, err = list.Readdirnames(listed)
		if w.listed != nil {
			w.listed(path)
		}
		for _, name := range names {
			w.remove(dir, name, path+name, depth)
		}
	}
	if !errors.Is(err, io.EOF) {
		w.failed(path, err)
	}
}

// remove deletes an entry of a directory.
func (w *walk) remove(dir *os.Root, name, path string, depth int) {
	err := removeOne(dir, name)
	if isNotEmpty(err) && depth == deepest {
		if err = w.top.Rename(path, rand.Text()); err == nil { // no pod can have taken that name
			w.moved++
			return
		}
	}
	if isNotEmpty(err) && depth < deepest {
		err = w.descend(dir, name, path, depth)
	}
	if err == nil {
		w.removed++
	}
	w.failed(path, err)
}

func (w *walk) descend(dir *os.Root, name, path string, depth int) error {
	below, err := enter(dir, name)
	if err != nil {
		return err
	}
	defer below.Close()
	w.clear(below, path+"/", depth+1)
	return removeOne(dir, name)
}

// removeOne deletes a file, an empty directory, or a subvolume of a btrfs with its content. Without
// the capability SYS_ADMIN a subvolume is a directory like any other.
func removeOne(dir *os.Root, name string) error {
	err := dir.Remove(name)
	if !isNotEmpty(err) || !isSubvolume(dir, name) {
		return err
	}
	if destroy(dir, name) == nil {
		return nil
	}
	return err
}

// failed notes the first thing that could not be deleted.
func (w *walk) failed(path string, err error) {
	if w.first == nil {
		w.first = failure(w.dir+"/"+path, err)
	}
}

// enter opens a directory of dir. An owner without CAP_DAC_OVERRIDE, as on an NFS server, lists and
// empties only what the mode lets it.
func enter(dir *os.Root, name string) (*os.Root, error) {
	const whole = 0o700
	if info, err := dir.Lstat(name); err == nil && info.IsDir() && info.Mode()&whole != whole {
		_ = dir.Chmod(name, whole) // where it may not, the next step says so
	}
	// Only what is not the last part is opened as a directory: a pipe in its place would be waited
	// for.
	return dir.OpenRoot(name + "/.")
}

// isNotEmpty reports whether a directory was not deleted because of what is in it. A mount point is
// busy instead, and so is never entered.
func isNotEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) // as some file systems say
}

// failure says what could not be deleted, why, and what to do. What does not exist is deleted.
func failure(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	cause := err // without the names in it: they are a pod's, and could begin a line for the claim's user
	for inner := errors.Unwrap(cause); inner != nil; inner = errors.Unwrap(inner) {
		cause = inner
	}
	remedy := "It is tried again"
	switch {
	case errors.Is(err, fs.ErrPermission):
		remedy = "Remedy: run as the owner of all files, or as root with the capabilities DAC_OVERRIDE and " +
			"FOWNER, on a node with SELinux also at the level s0:c0.c1023"
	case errors.Is(err, syscall.EBUSY):
		remedy = "Remedy: unmount file systems there, and end processes that have it open"
	case isNotEmpty(err):
		remedy = "A pod still writes to it. Remedy: end the pods that use it"
	}
	return fmt.Errorf("%q cannot be deleted: %w. %s", cut(path), cause, remedy)
}

// cut shortens a path for a message, of which 1 KiB is kept.
func cut(path string) string {
	const most = 300
	if len(path) <= most {
		return path
	}
	return path[:most] + "..."
}
