package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// The Makefile sets both from git by -ldflags -X, because it builds with -buildvcs=false. Without
// git they are empty.
var (
	version string
	commit  string
)

// unknown stands for what neither the linker's flags nor the build information say.
const unknown = "unknown"

// Info describes a build.
type Info struct {
	Version string // as git describe prints it
	Commit  string // the full hash
	Go      string // the version of Go that compiled it
}

// Get returns the description of the running program.
func Get() Info {
	build, _ := debug.ReadBuildInfo()
	return describe(version, commit, build)
}

// String is one line for a reader.
func (i Info) String() string {
	return fmt.Sprintf("%s (commit %s, %s)", i.Version, i.Commit, i.Go)
}

// describe prefers the linker's flags, then what the go command wrote into the binary: go install
// names a module's version, and a plain go build in a clone names the commit.
func describe(version, commit string, build *debug.BuildInfo) Info {
	out := Info{Version: version, Commit: commit, Go: runtime.Version()}
	if build != nil {
		out.Version = first(out.Version, build.Main.Version)
		out.Commit = first(out.Commit, revision(build))
	}
	out.Version = first(out.Version, unknown)
	out.Commit = first(out.Commit, unknown)
	return out
}

// revision returns the commit that the go command found, or "".
func revision(build *debug.BuildInfo) string {
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}

// first returns the first of two texts that says anything. "(devel)" is what the go command calls a
// build without a version.
func first(a, b string) string {
	if a != "" {
		return a
	}
	if b == "(devel)" {
		return ""
	}
	return b
}
