package version

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestDescribePrefersTheLinkersFlagsThenTheBuildInformation(t *testing.T) {
	clone := &debug.BuildInfo{
		Main:     debug.Module{Version: "(devel)"},
		Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123abcd"}},
	}
	installed := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}
	for name, tt := range map[string]struct {
		version, commit         string
		build                   *debug.BuildInfo
		wantVersion, wantCommit string
	}{
		"flags":                    {"v1.0.0-4-gabc", "abcdef", clone, "v1.0.0-4-gabc", "abcdef"},
		"a version without commit": {"v1.0.0", "", installed, "v1.0.0", "unknown"},
		"a build in a clone":       {"", "", clone, "unknown", "0123abcd"},
		"go install":               {"", "", installed, "v1.2.3", "unknown"},
		"no git":                   {"", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "unknown", "unknown"},
		"no build information":     {"", "", nil, "unknown", "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			want := Info{Version: tt.wantVersion, Commit: tt.wantCommit, Go: runtime.Version()}
			if got := describe(tt.version, tt.commit, tt.build); got != want {
				t.Errorf("describe returns %+v, want %+v", got, want)
			}
		})
	}
}

func TestGetNamesEveryPart(t *testing.T) {
	if got := Get(); got.Version == "" || got.Commit == "" || got.Go != runtime.Version() {
		t.Errorf("Get returns %+v: a part is empty", got)
	}
}

func TestStringIsOneLine(t *testing.T) {
	got := Info{Version: "v1.2.3", Commit: "0123abcd", Go: "go1.26.0"}.String()
	if want := "v1.2.3 (commit 0123abcd, go1.26.0)"; got != want {
		t.Errorf("String returns %q, want %q", got, want)
	}
}
