package remote

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// zpool is the data set tank/flex: what it has room for, and the properties of its children.
type zpool struct {
	Available int64
	// Unmountable and Unshareable are how many times it will not be mounted, or shared.
	Unmountable, Unshareable int
	// ShareNFS is the property of the parent, and Mountpoint another one than a path.
	ShareNFS, Mountpoint string
	// Exported are the paths of the NFS server, and Failing is that it takes none.
	Exported []string
	Failing  bool
	// Busy is that a node has files of the data sets open.
	Busy bool
	// Claimed is what a hostile box says of where it is mounted.
	Claimed  string
	Children map[string]map[string]string
}

// zfs knows the commands that the recipe uses, and no others.
func zfs(world string, arguments []string, _ io.Reader, out, log io.Writer) int {
	code := 0
	state(world, "zfs", func(pool *zpool) {
		line, last := strings.Join(arguments, " "), arguments[len(arguments)-1]
		_, exists := pool.Children[last]
		switch {
		case strings.HasPrefix(line, "list ") && last != "tank/flex":
			fmt.Fprintf(log, "cannot open '%s': dataset does not exist\n", last)
			code = 1
		case line == "list -H -d 1 -o name tank/flex":
			fmt.Fprintln(out, strings.Join(append([]string{"tank/flex"}, slices.Sorted(maps.Keys(pool.Children))...), "\n"))
		case line == "list -Hp -d 1 -o name,refquota,creation,referenced,flex:note tank/flex":
			fmt.Fprintln(out, "tank/flex\t0\t1700000000\t24576\t-")
			for name, p := range pool.Children {
				fmt.Fprintf(out, "%s\t%s\t1700000000\t24576\t%s\n", name, p["refquota"], p["flex:note"])
			}
		case line == "get -Hp -o value available tank/flex":
			fmt.Fprintln(out, pool.Available)
		case line == "get -Hp -o value sharenfs tank/flex":
			fmt.Fprintln(out, pool.ShareNFS)
		case line == "get -Hp -o value mountpoint tank/flex":
			fmt.Fprintln(out, cmp.Or(pool.Mountpoint, filepath.Join(world, "box/tank/flex")))
		case line == "get -Hp -o value mountpoint "+last && pool.Claimed != "":
			fmt.Fprint(out, pool.Claimed)
		case strings.HasPrefix(line, "get -Hp -o value ") && exists:
			fmt.Fprintln(out, cmp.Or(pool.Children[last][arguments[4]], map[string]string{"flex:note": "-"}[arguments[4]], "0"))
		case arguments[0] == "create" && !exists && strings.HasPrefix(last, "tank/flex/"):
			code = pool.set(last, slices.DeleteFunc(arguments[1:len(arguments)-1], func(a string) bool { return a == "-o" }))
			path := filepath.Join(world, "box", last)
			pool.Children[last]["mountpoint"] = path
			if err := os.MkdirAll(path, 0o755); err != nil {
				panic(err)
			}
			if code = max(code, pool.mount(last, log)); code == 0 {
				code = pool.share(last, log)
			}
		case arguments[0] == "share" && exists:
			code = pool.share(last, log)
		case arguments[0] == "mount" && exists && pool.Children[last]["mounted"] != "yes":
			code = pool.mount(last, log)
		case arguments[0] == "set" && exists:
			code = pool.set(last, arguments[1:len(arguments)-1])
		case arguments[0] == "destroy" && arguments[1] == "-r" && exists && pool.Busy:
			fmt.Fprintf(log, "cannot unmount '%s': pool or dataset is busy\n", pool.Children[last]["mountpoint"])
			code = 1
		case arguments[0] == "destroy" && arguments[1] == "-r" && exists:
			delete(pool.Children, last)
		default:
			code = unexpected(log, "zfs", arguments)
		}
	})
	return code
}

// mount fails as often as it is to: create has created the data set then.
func (p *zpool) mount(name string, log io.Writer) int {
	if p.Unmountable > 0 {
		p.Unmountable--
		fmt.Fprintln(log, "filesystem successfully created, but not mounted")
		return 1
	}
	p.Children[name]["mounted"] = "yes"
	return 0
}

// share takes a data set for shared with sharenfs=on, once it was: it does not ask the NFS server,
// and does not hear of its failures, either.
func (p *zpool) share(name string, log io.Writer) int {
	switch children := p.Children[name]; {
	case p.Unshareable > 0:
		p.Unshareable--
		fmt.Fprintln(log, "filesystem successfully created, but not shared")
		return 1
	case p.ShareNFS == "on" && children["shared"] == "yes":
		fmt.Fprintf(log, "cannot share '%s': filesystem already shared\n", name)
		return 1
	default:
		children["shared"] = "yes"
		if !p.Failing {
			p.Exported = append(p.Exported, children["mountpoint"])
		}
		return 0
	}
}

// exportfs lists what the NFS server exports, a long path on a line of its own.
func exportfs(world string, arguments []string, _ io.Reader, out, log io.Writer) int {
	if len(arguments) > 0 {
		return unexpected(log, "exportfs", arguments)
	}
	state(world, "zfs", func(pool *zpool) {
		for _, path := range pool.Exported {
			fmt.Fprintf(out, "%s\n\t\t192.0.2.0/24\n", path)
		}
	})
	return 0
}

func (p *zpool) set(name string, properties []string) int {
	if p.Children[name] == nil {
		p.Children[name] = map[string]string{}
	}
	for _, property := range properties {
		key, value, _ := strings.Cut(property, "=")
		if n, err := strconv.ParseInt(value, 10, 64); key == "refreservation" && (err != nil || n > p.Available) {
			return 1
		}
		p.Children[name][key] = value
	}
	return 0
}
