package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// logicalVolume is one of the group vg.
type logicalVolume struct {
	Size   int64
	Tags   []string
	Origin string
	// Inactive is that it has no device, as after a reboot.
	Inactive bool
}

// lvm is the group: its thin pool, and what is in it.
type lvm struct {
	Used    string // percent, of a pool that is active
	NoPool  bool
	Full    bool // its metadata area
	Volumes map[string]logicalVolume
}

const extent = 4 * mebi

// columns are what lvs is asked for, by its arguments. NAME is the name of a volume.
func lvs(world string, arguments []string, _ io.Reader, out, log io.Writer) int {
	if len(arguments) < 3 || arguments[0] != "--noheadings" {
		return unexpected(log, "lvs", arguments)
	}
	if name := arguments[len(arguments)-1]; name != "vg" {
		fmt.Fprintf(log, "  Volume group %q not found\n  Cannot process volume group %s\n", name, name)
		return 5
	}
	columns := arguments[slices.Index(arguments, "-o")+1]
	selected := ""
	if i := slices.Index(arguments, "--select"); i >= 0 {
		selected = strings.TrimSuffix(strings.TrimPrefix(arguments[i+1], "lv_name="), " && segtype=thin")
	}
	state(world, "lvm", func(group *lvm) {
		switch {
		case selected == "pool && segtype=thin-pool" && !group.NoPool:
			fmt.Fprintf(out, "  %s\n", group.Used)
			return
		case strings.Contains(selected, " "):
			return
		}
		for name, v := range group.Volumes {
			if selected != "" && name != selected {
				continue
			}
			text := strings.NewReplacer("lv_name", name, "lv_size", strconv.FormatInt(v.Size, 10), "lv_tags", strings.Join(v.Tags, ","), "lv_active", map[bool]string{false: "active"}[v.Inactive], "data_percent", map[bool]string{false: "25.00"}[v.Inactive], "vg_extent_size", strconv.Itoa(extent))
			fields := []string{}
			for column := range strings.SplitSeq(columns, ",") {
				fields = append(fields, text.Replace(column))
			}
			fmt.Fprintf(out, "  %s\n", strings.Join(fields, " "))
		}
	})
	return 0
}

// flags reads the arguments of a command of LVM: the switches, and what follows the others.
func flags(arguments []string, switches ...string) (values map[string][]string, rest []string) {
	values = map[string][]string{}
	for i := 0; i < len(arguments); i++ {
		switch a := arguments[i]; {
		case slices.Contains(switches, a):
			values[a] = nil
		case strings.HasPrefix(a, "--"):
			i++
			values[a] = append(values[a], arguments[i])
		default:
			rest = append(rest, a)
		}
	}
	return values, rest
}

// sectors returns the bytes of a size such as 2048s, in whole extents.
func sectors(size string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(size, "s"), 10, 64)
	if err != nil || !strings.HasSuffix(size, "s") {
		return -1
	}
	return (n*512 + extent - 1) / extent * extent
}

func lvcreate(world string, arguments []string, _ io.Reader, _, log io.Writer) int {
	f, rest := flags(arguments, "--yes", "--snapshot")
	_, isSnapshot := f["--snapshot"]
	volume := logicalVolume{Tags: f["--addtag"]}
	code := 0
	state(world, "lvm", func(group *lvm) {
		name := f["--name"][0]
		_, exists := group.Volumes[name]
		switch {
		case exists:
			code = 5
		case group.Full:
			fmt.Fprintln(log, "  VG vg 901 metadata on /dev/sdb (521980 bytes) exceeds maximum metadata size (521472 bytes)\n  Failed to write VG vg.")
			code = 5
		case isSnapshot:
			origin := strings.TrimPrefix(rest[0], "vg/")
			source, found := group.Volumes[origin]
			if volume.Origin, volume.Size = origin, source.Size; !found || f["--setactivationskip"][0] != "n" {
				code = 5
			}
		default:
			if volume.Size = sectors(f["--virtualsize"][0]); volume.Size < 0 || f["--thinpool"][0] != "pool" || rest[0] != "vg" {
				code = unexpected(log, "lvcreate", arguments)
			}
		}
		if code == 0 {
			group.Volumes[name] = volume
		}
	})
	return code
}

func lvextend(world string, arguments []string, _ io.Reader, _, log io.Writer) int {
	f, rest := flags(arguments)
	code := 5
	state(world, "lvm", func(group *lvm) {
		name := strings.TrimPrefix(rest[0], "vg/")
		if v, found := group.Volumes[name]; found && sectors(f["--size"][0]) > v.Size {
			v.Size, code = sectors(f["--size"][0]), 0
			group.Volumes[name] = v
		}
	})
	return code
}

func lvchange(world string, arguments []string, _ io.Reader, _, log io.Writer) int {
	if len(arguments) != 4 || strings.Join(arguments[:3], " ") != "--activate y --ignoreactivationskip" {
		return unexpected(log, "lvchange", arguments)
	}
	state(world, "lvm", func(group *lvm) {
		name := strings.TrimPrefix(arguments[3], "vg/")
		v := group.Volumes[name]
		v.Inactive = false
		group.Volumes[name] = v
	})
	return 0
}

func lvremove(world string, arguments []string, _ io.Reader, _, log io.Writer) int {
	code := 5
	state(world, "lvm", func(group *lvm) {
		name := strings.TrimPrefix(arguments[1], "vg/")
		if _, found := group.Volumes[name]; found && arguments[0] == "--yes" && backstores(world, name) == 0 { // else it is in use
			delete(group.Volumes, name)
			code = 0
		}
	})
	return code
}

func backstores(world, name string) int {
	found, _ := filepath.Glob(filepath.Join(world, "box/lio/core/iblock_*", name))
	return len(found)
}

// targetcli reads commands from its input, and continues after an error. What it makes is in the
// files of LIO, as the kernel shows them.
func targetcli(world string, arguments []string, in io.Reader, out, log io.Writer) int {
	if len(arguments) > 0 {
		return unexpected(log, "targetcli", arguments)
	}
	if _, err := os.Stat(filepath.Join(world, "box/no-dbus")); err == nil {
		fmt.Fprintln(log, "g-io-error-quark: Could not connect: Connection refused (39)")
		return 255
	}
	text, _ := io.ReadAll(in)
	for line := range strings.Lines(string(text)) {
		fmt.Fprintln(out, "/> "+line)
		if err := lio(world, strings.Fields(line)); err != nil {
			fmt.Fprintln(out, err)
		}
	}
	return 0
}

// lio runs a command. The file box/targetcli names what its settings leave out of a new target:
// portal or enable.
func lio(world string, words []string) error {
	root := filepath.Join(world, "box/lio")
	settings, _ := os.ReadFile(filepath.Join(world, "box/targetcli"))
	after := func(i int) string { _, value, _ := strings.Cut(words[i], "="); return value }
	target := filepath.Join(root, "iscsi", iqnOf(words), "tpgt_1")
	switch command := strings.Join(words[:min(2, len(words))], " "); {
	case command == "/backstores/block create":
		name, device := after(2), after(3)
		var group lvm
		state(world, "lvm", func(all *lvm) { group = *all })
		if v, found := group.Volumes[filepath.Base(device)]; !found || v.Inactive {
			return fmt.Errorf("%s does not exist", device)
		}
		dir := filepath.Join(root, "core/iblock_0", name)
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "udev_path"), []byte(device+"\n"), 0o600)
	case command == "/iscsi create":
		if err := os.Mkdir(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		dirs := []string{"attrib", "auth", "lun", "np"}
		if string(settings) != "portal" {
			dirs = append(dirs, "np/0.0.0.0:3260")
		}
		for _, dir := range dirs {
			if err := os.MkdirAll(filepath.Join(target, dir), 0o755); err != nil {
				return err
			}
		}
		enabled := "1\n"
		if string(settings) == "enable" {
			enabled = "0\n"
		}
		if err := os.WriteFile(filepath.Join(target, "enable"), []byte(enabled), 0o600); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(target, "dynamic_sessions"), nil, 0o600)
	case command == "/iscsi delete":
		return os.RemoveAll(filepath.Dir(target))
	case command == "/backstores/block delete":
		return os.RemoveAll(filepath.Join(root, "core/iblock_0", words[2]))
	case strings.HasSuffix(command, "/tpg1/luns create") && words[3] == "lun=1":
		name := filepath.Base(words[2])
		if backstores(world, name) == 0 {
			return fmt.Errorf("no storage object %s", name)
		}
		if err := os.Mkdir(filepath.Join(target, "lun/lun_1"), 0o755); err != nil {
			return err
		}
		return os.Symlink(filepath.Join(root, "core/iblock_0", name), filepath.Join(target, "lun/lun_1/link"))
	case strings.HasSuffix(command, "/tpg1 set"):
		for _, word := range words[3:] {
			key, value, _ := strings.Cut(word, "=")
			dir := map[string]string{"auth": "auth", "attribute": "attrib"}[words[2]]
			if err := os.WriteFile(filepath.Join(target, dir, key), []byte(value+"\n"), 0o600); err != nil {
				return err
			}
		}
		return nil
	case command == "saveconfig":
		return saveLIO(root, filepath.Join(world, "box/rtslib"))
	}
	return fmt.Errorf("unknown command %q", words)
}

// saveLIO writes what there is, and no more, in the form of rtslib.
func saveLIO(root, dir string) error {
	devices, _ := filepath.Glob(filepath.Join(root, "core/*/*/udev_path"))
	targets, _ := filepath.Glob(filepath.Join(root, "iscsi/iqn.*"))
	objects, saved := []map[string]any{}, []map[string]any{}
	for _, file := range devices {
		device, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		objects = append(objects, map[string]any{"dev": strings.TrimSpace(string(device)), "name": filepath.Base(filepath.Dir(file)), "wwn": "6b1f"})
	}
	for _, target := range targets {
		saved = append(saved, map[string]any{"fabric": "iscsi", "tpgs": []any{}, "wwn": filepath.Base(target)})
	}
	text, err := json.MarshalIndent(map[string]any{"fabric_modules": []any{}, "storage_objects": objects, "targets": saved}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "saveconfig.json"), text, 0o600)
}

// iqnOf returns the target that a command is about.
func iqnOf(words []string) string {
	for _, word := range words {
		for part := range strings.SplitSeq(word, "/") {
			if strings.HasPrefix(part, "iqn.") {
				return part
			}
		}
	}
	return "none"
}
