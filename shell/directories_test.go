package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// A script that writes names that it has fixed mixes nothing up with what runs beside it.
func TestACommandHasDirectoriesOfItsOwn(t *testing.T) {
	p := newPod(t, contract.Provision, 8)
	k := p.serve()
	p.env["HOME"] = p.dir
	// Each waits until all have written.
	must(t, p.each(1000, number+`
for dir in . "$TMPDIR" "$HOME"; do mkdir -p "$dir/$n"; echo "$n" >"$dir/name"; done
echo "/export/$n" >"$TMPDIR/path"
touch "$FLEX_TEST_DIR/wrote.$n"
until set -- "$FLEX_TEST_DIR"/wrote.*; [ $# = 8 ]; do sleep 0.05; done
[ "$(cat "$TMPDIR/name" "$HOME/name" name | sort -u)" = "$n" ]
[ "$(ls)" = "$(printf '%s\n' "$n" name path)" ]
[ "$PWD" = "$HOME" ] && [ "$(pwd -P)" = "$(cd "$TMPDIR" && pwd -P)" ] && [ "$(stat -c %a .)" = 700 ]
[[ $PWD == "$FLEX_TEST_DIR"/flex-each-*/* ]]
flex pv '{"spec":{"nfs":{"server":"filer","path":"'"$(cat path)"'"}}}'
mkdir -p a/b && chmod 500 a
`).Run())
	for n := range 8 {
		if pv := k.pvs["pvc-"+uid(n)]; !strings.Contains(pv, fmt.Sprintf(`"/export/%d"`, n)) {
			t.Errorf("claim %d has %s: %s", n, pv, &p.says)
		}
	}
	if left, _ := filepath.Glob(p.dir + "/flex-each-*"); len(left) > 0 {
		t.Errorf("it leaves %q", left)
	}
}

// A run for one request is that of the image, and so are its directories.
func TestOneRequestHasTheDirectoriesOfTheContainer(t *testing.T) {
	p := newPod(t, contract.Provision, 1)
	p.env["HOME"] = "/home/of-the-container"
	cmd := p.each(8, `echo "$HOME $TMPDIR $(pwd)" >"$FLEX_TEST_DIR/has"`)
	cmd.Dir = p.dir
	must(t, cmd.Run())
	want := "/home/of-the-container " + p.dir + " " + p.dir + "\n"
	if has, err := os.ReadFile(p.dir + "/has"); err != nil || string(has) != want {
		t.Errorf("it has %s, %v", has, err)
	}
}

// A path that begins in the working directory of flex each is that of the command nevertheless.
func TestACommandIsFoundFromTheDirectoryOfTheRun(t *testing.T) {
	p := newPod(t, contract.Provision, 2)
	cmd := p.each(2, `touch "$FLEX_TEST_DIR/ran.$FLEX_CLAIM_UID"`)
	cmd.Dir, cmd.Args[3] = p.dir, "./provision"
	cmd.Env = append(cmd.Env, "TMPDIR=.")
	if code := exitOf(t, cmd.Run()); code != 0 {
		t.Errorf("exit %d: %s", code, &p.says)
	}
	p.waitFor("ran.*", 2)
}

// What a script has left mounted in its directory may be the storage with the volumes of all
// claims.
func TestAFileSystemThatACommandLeavesMountedIsNotEmptied(t *testing.T) {
	p := newPod(t, contract.Delete, 2)
	must(t, os.Mkdir(p.dir+"/export", 0o755))
	p.write("export/volume", "data")
	cmd := p.each(2, number+`touch beside
mkdir m
[ "$n" = 1 ] || mount --bind "$FLEX_TEST_DIR/export" m
`)
	alone := []string{"unshare", "--user", "--map-root-user", "--mount", cmd.Path}
	cmd.Path, cmd.Args = "/usr/bin/unshare", append(alone, cmd.Args[1:]...)
	code := exitOf(t, cmd.Run())
	if code != 0 || !strings.Contains(p.says.String(), "Remedy: unmount file systems there") {
		t.Errorf("exit %d: %s", code, &p.says)
	}
	if data, err := os.ReadFile(p.dir + "/export/volume"); err != nil || string(data) != "data" {
		t.Errorf("the volume is %q, %v", data, err)
	}
	left, _ := filepath.Glob(p.dir + "/flex-each-*/*/*")
	if len(left) != 1 || filepath.Base(left[0]) != "m" {
		t.Errorf("it leaves %q", left)
	}
}
