package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

var emptyVerb = verb{
	name:      "empty",
	arguments: "DIR...",
	does:      "delete each DIR with its contents, also while pods write to it; a DIR that does not exist is a success",
	run:       empty,
}

// How often one DIR is walked through: what is written behind one walk needs another. Those that
// have moved directories are counted apart. A tree as deep as a file system allows needs some, and a
// pod that goes on nesting directories needs more without end.
const (
	most      = 5
	mostMoved = 10_000
)

// empty deletes directories. The path of a directory's parent is followed as it is: whoever can
// change that can delete the directory anyway. Below that nothing is followed.
func empty(_ *container, dirs []string) error {
	if len(dirs) == 0 {
		return misused("a directory is required: flex empty DIR")
	}
	for _, dir := range dirs { // of all, before anything is deleted
		if _, _, err := split(dir); err != nil {
			return err
		}
	}
	var failed []error
	for _, dir := range dirs {
		if err := emptyOne(dir); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// split returns the parent and the name of a directory. "$BASE/$NAME" with an empty name would be
// the volumes of all claims.
func split(dir string) (parent, name string, err error) {
	at := strings.LastIndex(dir, "/") + 1
	parent, name = dir[:at], dir[at:]
	if !strings.HasPrefix(dir, "/") || name == "" || name == "." || name == ".." {
		return "", "", misused("%q cannot be deleted: the path must begin with / and end with the name of the directory. "+
			`If a variable in it is empty, write it as "${FLEX_BASE_DIR:?}/${FLEX_PV_NAME:?}"`, dir)
	}
	return parent, name, nil
}

func emptyOne(dir string) error {
	above, name, err := split(dir)
	if err != nil {
		return err
	}
	parent, err := os.OpenRoot(above)
	if errors.Is(err, fs.ErrNotExist) { // an export that is not mounted is no deleted volume
		return fmt.Errorf("%q does not exist, so %q may still exist elsewhere. Remedy: mount the export, or correct the path", above, name)
	}
	if err != nil {
		return failure(above, err)
	}
	defer parent.Close()
	info, err := parent.Lstat(name)
	if err != nil {
		return failure(dir, err)
	}
	if !info.IsDir() {
		return misused("%q is not a directory, and was not deleted. A pod cannot have created it. Remedy: find out what created it, then run unlink %[1]q", dir)
	}
	return remove(parent, name, dir)
}

// remove deletes the directory name of parent.
func remove(parent *os.Root, name, dir string) error {
	var w walk
	for walks, moved := 0, 0; ; {
		err := removeOne(parent, name)
		if !isNotEmpty(err) {
			return failure(dir, err)
		}
		if err := w.stops(walks, moved); err != nil {
			return err
		}
		top, err := enter(parent, name)
		if err != nil {
			return failure(dir, err)
		}
		w = walk{top: top, dir: dir}
		w.clear(top, "", 0)
		_ = top.Close()
		if w.moved > 0 {
			moved++
		} else {
			walks++
		}
	}
}

// stops returns why no walk follows this one, after so many, and so many that have moved
// directories. There is something in the directory.
func (w *walk) stops(walks, moved int) error {
	switch {
	case w.moved > 0 && moved < mostMoved:
		return nil
	case w.first != nil && (w.removed == 0 || walks == most): // without progress, the next walk would find the same
		return w.first
	case walks == most || moved == mostMoved:
		return failure(w.dir, syscall.ENOTEMPTY)
	}
	return nil
}
