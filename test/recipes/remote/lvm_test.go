package remote

import (
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
}

// lvm is the group: its thin pool, and what is in it.
type lvm struct {
	Used    string // percent
	Volumes map[string]logicalVolume
}

const extent = 4 * mebi

// columns are what lvs is asked for, by its arguments. NAME is the name of a volume.
func lvs(world string, arguments []string, _ io.Reader, out, log io.Writer) int {
	if len(arguments) < 3 || arguments[0] != "--noheadings" || arguments[len(arguments)-1] != "vg" {
		return unexpected(log, "lvs", arguments)
	}
	columns := arguments[slices.Index(arguments, "-o")+1]
	selected := ""
	if i := slices.Index(arguments, "--select"); i >= 0 {
		selected = strings.TrimPrefix(arguments[i+1], "lv_name=")
	}
	state(world, "lvm", func(group *lvm) {
		if selected == "pool" {
			fmt.Fprintf(out, "  %s\n", group.Used)
			return
		}
		for name, v := range group.Volumes {
			if selected != "" && name != selected {
				continue
			}
			text := strings.NewReplacer("lv_name", name, "lv_size", strconv.FormatInt(v.Size, 10), "lv_tags", strings.Join(v.Tags, ","), "vg_extent_size", strconv.Itoa(extent))
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
	text, _ := io.ReadAll(in)
	for line := range strings.Lines(string(text)) {
		fmt.Fprintln(out, "/> "+line)
		if err := lio(filepath.Join(world, "box/lio"), strings.Fields(line)); err != nil {
			fmt.Fprintln(out, err)
		}
	}
	return 0
}

func lio(root string, words []string) error {
	after := func(i int) string { _, value, _ := strings.Cut(words[i], "="); return value }
	target := filepath.Join(root, "iscsi", iqnOf(words), "tpgt_1")
	switch command := strings.Join(words[:min(2, len(words))], " "); {
	case command == "/backstores/block create":
		dir := filepath.Join(root, "core/iblock_0", after(2))
		return os.MkdirAll(dir, 0o755)
	case command == "/iscsi create":
		if err := os.Mkdir(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		for _, dir := range []string{"attrib", "auth", "lun"} {
			if err := os.MkdirAll(filepath.Join(target, dir), 0o755); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(target, "dynamic_sessions"), nil, 0o600)
	case command == "/iscsi delete":
		return os.RemoveAll(filepath.Dir(target))
	case command == "/backstores/block delete":
		return os.Remove(filepath.Join(root, "core/iblock_0", words[2]))
	case strings.HasSuffix(command, "/tpg1/luns create") && words[3] == "lun=1":
		return os.Mkdir(filepath.Join(target, "lun/lun_1"), 0o755)
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
		return nil
	}
	return fmt.Errorf("unknown command %q", words)
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
