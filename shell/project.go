package shell

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// What include/uapi/linux/fs.h and dqblk_xfs.h of Linux call these. The numbers are those of amd64
// and arm64.
const (
	iocGetAttributes = 0x801c581f // FS_IOC_FSGETXATTR
	iocSetAttributes = 0x401c5820 // FS_IOC_FSSETXATTR
	inherited        = 0x200      // FS_XFLAG_PROJINHERIT: for what is created in a directory

	sysQuotactlFD = 443
	getQuota      = 0x5803<<8 | 2 // QCMD(Q_XGETQUOTA, PRJQUOTA)
	setLimit      = 0x5804<<8 | 2 // QCMD(Q_XSETQLIM, PRJQUOTA)
	hardLimit     = 1 << 3        // FS_DQ_BHARD
	projectQuota  = 2             // FS_PROJ_QUOTA

	// sector is the unit of a limit, in bytes.
	sector = 512
)

// attributes are those of a file (struct fsxattr).
type attributes struct {
	flags, extent, extents, project, cowExtent uint32
	_                                          [8]byte
}

// diskQuota is what a file system keeps of a project (struct fs_disk_quota).
type diskQuota struct {
	version, flags       int8
	fields               uint16
	id                   uint32
	hard, soft           uint64 // in sectors
	hardFiles, softFiles uint64
	used, files          uint64
	_                    [56]byte
}

var projectVerb = verb{
	name:      "project",
	arguments: "DIR [NUMBER BYTES]",
	does: "print the limit in bytes of DIR and all in it, by the project quotas of its file system, " +
		"and fail if it has none; with NUMBER and BYTES set it first: DIR gets the project NUMBER, or " +
		"the next that nothing has; a project that DIR has stays, as does a higher limit, and 0 takes " +
		"the limit away",
	run: project,
}

// project sets and prints the limit of a directory's project. The kernel wants the capability
// SYS_ADMIN for that.
func project(in *container, arguments []string) error {
	var first, bytes uint64
	var err error
	switch len(arguments) {
	case 1:
	case 3:
		first, err = strconv.ParseUint(arguments[1], 10, 32)
		if err != nil || first == 0 {
			return misused("%q is no number of a project: it must be from 1 to 4294967295", arguments[1])
		}
		bytes, err = strconv.ParseUint(arguments[2], 10, 63)
		if err != nil {
			return misused("%q is no number of bytes", arguments[2])
		}
	default:
		return misused("one or three arguments are required: flex project DIR [NUMBER BYTES]")
	}
	dir, err := os.Open(arguments[0]) //nolint:gosec // the script's own argument
	if err != nil {
		return fmt.Errorf("%q cannot be opened: %w", arguments[0], err)
	}
	defer dir.Close()
	if first != 0 {
		err = setProject(dir, uint32(first), bytes)
	}
	var limit uint64
	if err == nil {
		limit, err = limitOf(dir)
	}
	if err != nil {
		return fmt.Errorf("%q has no limit of its own: %w. Remedy: mount its file system with the option prjquota, "+
			"and run as root with the capability SYS_ADMIN", arguments[0], err)
	}
	fmt.Fprintln(in.out, limit)
	return nil
}

// setProject gives a directory a project, if it has none, and the project its limit.
func setProject(dir *os.File, first uint32, bytes uint64) error {
	id, err := projectOf(dir)
	if err == nil && id == 0 {
		id, err = joinProject(dir, first)
	}
	if err != nil {
		return err
	}
	return limitProject(dir, id, bytes)
}

// projectOf returns the project of a directory, or 0. A directory that is created below one with a
// project has that project, too: a limit of its own would be the limit of all that is there.
func projectOf(dir *os.File) (uint32, error) {
	above, err := os.Open(dir.Name() + "/..") //nolint:gosec // of the script's own argument
	if err != nil {
		return 0, err
	}
	defer above.Close()
	var its, own attributes
	if err := ioctl(above, iocGetAttributes, unsafe.Pointer(&its)); err != nil { // #nosec G103 -- the kernel writes this struct
		return 0, fmt.Errorf("read the project of the directory above: %w", err)
	}
	if its.flags&inherited != 0 && its.project != 0 {
		return 0, fmt.Errorf("the directory above has the project %d, which all in it has, too", its.project)
	}
	if err := ioctl(dir, iocGetAttributes, unsafe.Pointer(&own)); err != nil { // #nosec G103 -- the kernel writes this struct
		return 0, fmt.Errorf("read its project: %w", err)
	}
	return own.project, nil
}

// joinProject gives a directory the first project from a number on that nothing has. Other
// directories may have that number: theirs would be one limit for both.
func joinProject(dir *os.File, id uint32) (uint32, error) {
	for ; ; id++ {
		quota, err := quotaOf(dir, id)
		if err != nil {
			return 0, err
		}
		if id != 0 && quota.hard == 0 && quota.used == 0 && quota.files == 0 {
			break
		}
	}
	var own attributes
	if err := ioctl(dir, iocGetAttributes, unsafe.Pointer(&own)); err != nil { // #nosec G103 -- the kernel writes this struct
		return 0, fmt.Errorf("read its attributes: %w", err)
	}
	own.project = id
	own.flags |= inherited
	if err := ioctl(dir, iocSetAttributes, unsafe.Pointer(&own)); err != nil { // #nosec G103 -- the kernel reads this struct
		return 0, fmt.Errorf("give it the project %d: %w", id, err)
	}
	return id, nil
}

// limitProject sets the limit of a project, unless it has a higher one.
func limitProject(dir *os.File, id uint32, bytes uint64) error {
	quota, err := quotaOf(dir, id)
	if err != nil {
		return err
	}
	hard := min(bytes/sector+min(bytes%sector, 1), math.MaxInt64/sector)
	if bytes != 0 {
		hard = max(hard, quota.hard)
	}
	quota = diskQuota{version: 1, flags: projectQuota, fields: hardLimit, id: id, hard: hard}
	if err := quotactl(dir, setLimit, &quota); err != nil {
		return fmt.Errorf("set the limit of the project %d: %w", id, err)
	}
	return nil
}

// limitOf returns the limit of a directory's project, in bytes, or 0 if it has none. It fails where
// there are no project quotas. The limit of the project 0 is the file system's default.
func limitOf(dir *os.File) (uint64, error) {
	id, err := projectOf(dir)
	if err != nil {
		return 0, err
	}
	quota, err := quotaOf(dir, id)
	if id == 0 {
		return 0, err
	}
	return quota.hard * sector, err
}

// quotaOf returns what the file system of a directory keeps of a project, which may be nothing.
func quotaOf(dir *os.File, id uint32) (diskQuota, error) {
	quota := diskQuota{id: id}
	err := quotactl(dir, getQuota, &quota)
	if errors.Is(err, syscall.ENOENT) {
		return diskQuota{}, nil
	}
	if err != nil {
		return quota, fmt.Errorf("read the quota of the project %d: %w", id, err)
	}
	return quota, nil
}

// quotactl calls quotactl_fd(2), which has no device in its arguments: a container has none. Linux
// has had it since 5.14.
func quotactl(dir *os.File, command uintptr, quota *diskQuota) error {
	_, _, errno := syscall.Syscall6(sysQuotactlFD, dir.Fd(), command, uintptr(quota.id),
		uintptr(unsafe.Pointer(quota)), 0, 0) // #nosec G103 -- the kernel reads and writes this struct
	if errno != 0 {
		return errno
	}
	return nil
}
