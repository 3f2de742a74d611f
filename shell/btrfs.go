package shell

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// What include/uapi/linux/btrfs.h of Linux calls these.
const (
	iocSnapDestroy    = 0x5000940f
	iocSubvolSetFlags = 0x4008941a
	iocQuotaCtl       = 0xc0109428

	quotaEnable       = 1
	quotaEnableSimple = 4

	// subvolumeRoot is the inode number of the directory that is a subvolume (BTRFS_FIRST_FREE_OBJECTID).
	subvolumeRoot = 256
)

var quotaVerb = verb{
	name:      "quota",
	arguments: "DIR",
	does:      "turn on the quotas of the btrfs that DIR is on: simple ones if the kernel has them (6.7), else full ones; quotas that are on stay as they are",
	run:       quota,
}

// quota turns on quotas. Simple ones hold for more of what a pod writes than full ones. The btrfs of
// Debian 12 cannot turn them on. A kernel that does not know simple quotas answers EINVAL.
func quota(_ *container, arguments []string) error {
	if len(arguments) != 1 {
		return misused("one directory is required: flex quota DIR")
	}
	dir, err := os.Open(arguments[0]) //nolint:gosec // the script's own argument
	if err != nil {
		return fmt.Errorf("%q cannot be opened: %w", arguments[0], err)
	}
	defer dir.Close()
	for _, mode := range []uint64{quotaEnableSimple, quotaEnable} {
		command := struct{ command, status uint64 }{command: mode}
		if err = ioctl(dir, iocQuotaCtl, unsafe.Pointer(&command)); err == nil { // #nosec G103 -- the kernel reads and writes this struct
			return nil
		}
		if !errors.Is(err, syscall.EINVAL) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.ENOTTY):
		return fmt.Errorf("%q is not on btrfs. Remedy: mount a btrfs there", arguments[0])
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("the quotas of %q cannot be turned on: %w. Remedy: run as root with the capability SYS_ADMIN", arguments[0], err)
	}
	return fmt.Errorf("the quotas of %q cannot be turned on: %w", arguments[0], err)
}

// ioctl calls a file's ioctl with an argument that the kernel reads.
func ioctl(file *os.File, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}

// isSubvolume reports whether an entry of a directory may be a subvolume of a btrfs. On other file
// systems it is wrong about one directory, which the ioctls refuse.
func isSubvolume(dir *os.Root, name string) bool {
	info, err := dir.Lstat(name)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Ino == subvolumeRoot
}

// destroy deletes the subvolume that is the entry name of dir, whatever is in it, in one step. The
// kernel looks the name up in the directory that is open, follows no link there, and refuses what is
// not a subvolume (btrfs_ioctl_snap_destroy in fs/btrfs/ioctl.c). So what a pod swaps meanwhile is
// another subvolume of its own. It fails with ENOTEMPTY if there is a subvolume in it.
func destroy(dir *os.Root, name string) error {
	parent, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer parent.Close()
	var volume struct {
		fd   int64
		name [4088]byte
	}
	if len(name) >= len(volume.name) || bytes.IndexByte([]byte(name), 0) >= 0 {
		return syscall.EINVAL
	}
	copy(volume.name[:], name)
	return ioctl(parent, iocSnapDestroy, unsafe.Pointer(&volume)) // #nosec G103 -- the kernel reads this struct
}

// makeWritable lets what is in a read-only snapshot be deleted. Where it may not, the next step says
// so.
func makeWritable(subvolume *os.Root) {
	dir, err := subvolume.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	var flags uint64
	_ = ioctl(dir, iocSubvolSetFlags, unsafe.Pointer(&flags)) // #nosec G103 -- the kernel reads this number
}
