package remote

import (
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
	// Unmountable is how many times it will not be mounted.
	Unmountable int
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
		case line == "list -H -d 1 -o name tank/flex":
			fmt.Fprintln(out, strings.Join(append([]string{"tank/flex"}, slices.Sorted(maps.Keys(pool.Children))...), "\n"))
		case line == "list -Hp -d 1 -o name,refquota,creation,flex:note tank/flex":
			fmt.Fprintln(out, "tank/flex\t0\t1700000000\t-")
			for name, p := range pool.Children {
				fmt.Fprintf(out, "%s\t%s\t1700000000\t%s\n", name, p["refquota"], p["flex:note"])
			}
		case line == "get -Hp -o value available tank/flex":
			fmt.Fprintln(out, pool.Available)
		case line == "get -Hp -o value mountpoint "+last && pool.Claimed != "":
			fmt.Fprint(out, pool.Claimed)
		case strings.HasPrefix(line, "get -Hp -o value ") && exists:
			fmt.Fprintln(out, pool.Children[last][arguments[4]])
		case arguments[0] == "create" && !exists && strings.HasPrefix(last, "tank/flex/"):
			code = pool.set(last, slices.DeleteFunc(arguments[1:len(arguments)-1], func(a string) bool { return a == "-o" }))
			path := filepath.Join(world, "box", last)
			pool.Children[last]["mountpoint"] = path
			if err := os.MkdirAll(path, 0o755); err != nil {
				panic(err)
			}
			code = max(code, pool.mount(last, log))
		case arguments[0] == "mount" && exists && pool.Children[last]["mounted"] != "yes":
			code = pool.mount(last, log)
		case arguments[0] == "set" && exists:
			code = pool.set(last, arguments[1:len(arguments)-1])
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
