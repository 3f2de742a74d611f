package shell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/plugin/scaffold"
)

// recipe is a script of scripts, of kubectl flex new or of a page, with what its config and its pod
// have.
type recipe struct {
	properties []string // each a variable and its value
	replace    func(base string) []string
	path       string // of the volume's directory, below base
	pv         string // what the PV has, without blanks
}

const onHost1 = `"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["host1"]}]}]}}`

// PV stands for the name of the PersistentVolume, and BASE for the directory.
var recipes = map[string]recipe{
	"directory": {pv: `"local":{"path":"BASE/PV"},` + onHost1, path: "PV"},
	"seed": {
		properties: []string{"FLEX_NOTIFY_URL", "http://inventory.example", "HOSTNAME", "pod-1"}, pv: `"local":{"path":"BASE/PV"},` + onHost1, path: "PV",
		replace: func(base string) []string { return []string{"/seed/", base + "/../seed/"} },
	},
	"nfs": {
		properties: []string{"FLEX_NFS_SERVER", "filer", "FLEX_NFS_PATH", "/exports"}, pv: `"nfs":{"path":"/exports/volumes/PV","server":"filer"}`, path: "volumes/PV",
		replace: func(base string) []string { return []string{"/export/$", base + "/$"} },
	},
	"isolated":    {properties: []string{"FLEX_NFS_SERVER", "filer", "FLEX_NFS_PATH", "/exports"}, pv: `"nfs":{"path":"/exports/PV","server":"filer"}`, path: "PV"},
	"file-server": {properties: []string{"FLEX_SERVER", "filer", "FLEX_EXPORT", "/exports"}, pv: `"nfs":{"path":"/exports/PV","server":"filer"}`, path: "PV"},
	"new-node":    {pv: `"local":{"path":"BASE/PV"},` + onHost1, path: "PV"},
	"new-network": {properties: []string{"FLEX_NFS_SERVER", "filer", "FLEX_NFS_PATH", "/exports"}, pv: `"nfs":{"path":"/exports/PV","server":"filer"}`, path: "PV"},
	"page": {
		properties: []string{"FLEX_NFS_SERVER", "filer", "FLEX_NFS_PATH", "/exports"},
		pv:         `"nfs":{"path":"/exports/PV","server":"filer"}`, path: "PV",
	},
}

// whole are the recipes that have a config of their own beside the script.
var whole = map[string]func(t *testing.T) map[string]string{
	"new-network": func(t *testing.T) map[string]string {
		t.Helper()
		return newConfig(t, scaffold.Network)
	},
	"new-node": func(t *testing.T) map[string]string {
		t.Helper()
		return newConfig(t, scaffold.Node)
	},
	"page": pageConfig,
}

// textOf returns a script.
func textOf(t *testing.T, name string) string {
	t.Helper()
	if config := whole[name]; config != nil {
		return config(t)["script"]
	}
	text, err := os.ReadFile("../scripts/" + name + "-provisioner.sh")
	must(t, err)
	return string(text)
}

// script returns a command that runs a script in a pod, and the directory of its volumes.
func (p *pod) script(name, verb string) (cmd *exec.Cmd, base string) {
	p.t.Helper()
	r := recipes[name]
	base = p.dir + "/flex-volumes"
	must(p.t, os.MkdirAll(base, 0o755))
	p.write("seed/settings", "workers = 4")
	text := textOf(p.t, name)
	if r.replace != nil {
		text = strings.NewReplacer(r.replace(base)...).Replace(text)
	}
	p.write("provision", text)
	must(p.t, os.Chmod(p.dir+"/provision", 0o755))
	p.env["FLEX_BASE_DIR"], p.env["FLEX_VERB"] = base, verb
	for i := 0; i < len(r.properties); i += 2 {
		p.env[r.properties[i]] = r.properties[i+1]
	}
	cmd = exec.CommandContext(p.t.Context(), p.dir+"/provision", verb)
	p.says.Reset()
	bin := programs(p.t)
	must(p.t, os.WriteFile(bin+"/wget", []byte("#!/bin/bash\n"), 0o755))
	cmd.Env, cmd.Stdout, cmd.Stderr = p.environ(bin), &p.says, &p.says
	return cmd, base
}

func (r recipe) in(text, base, id string) string {
	return strings.NewReplacer("PV", contract.PVName(id), "BASE", base).Replace(text)
}

// Where the export is not mounted, a directory of the node would be taken for one of the export, and a
// volume that is still there for a deleted one.
func TestScriptsOfAnExportFailWhereItIsNotMounted(t *testing.T) {
	for _, name := range []string{"file-server", "isolated", "page"} {
		for _, verb := range []contract.Verb{contract.Provision, contract.Delete} {
			t.Run(name+" "+string(verb), func(t *testing.T) {
				p := newPod(t, verb, 1, func(_ int, r *contract.Request) { r.AccessModes = []string{"ReadWriteMany"} })
				cmd, base := p.script(name, string(verb))
				must(t, os.Remove(base))
				if code := exitOf(t, cmd.Run()); code == contract.ExitDone {
					t.Errorf("it succeeds: %s", &p.says)
				}
				if _, err := os.Stat(base); !os.IsNotExist(err) {
					t.Errorf("it has made the directory of the export: %v", err)
				}
			})
		}
	}
}

func TestScriptsProvisionAndDelete(t *testing.T) {
	found, err := filepath.Glob("../scripts/*-provisioner.sh")
	must(t, err)
	found = slices.DeleteFunc(found, func(path string) bool { // these need a file system, a device or another machine: test/recipes
		return slices.Contains([]string{"btrfs", "xfs", "loop", "http", "iscsi-target", "lvm", "zfs", "ceph-rbd"}, strings.TrimSuffix(filepath.Base(path), "-provisioner.sh"))
	})
	if len(found)-1+len(whole) != len(recipes) { // that of environment needs kubectl
		t.Errorf("scripts: %q", found)
	}
	oneAccess := func(_ int, r *contract.Request) { r.AccessModes = []string{"ReadWriteOnce"} }
	for name, r := range recipes {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, contract.Provision, 1, oneAccess)
			var k *kubernetes
			if name != "isolated" {
				k = p.serve()
			}
			dir := ""
			for range 2 { // every run may be repeated
				cmd, base := p.script(name, "provision")
				if code := exitOf(t, cmd.Run()); code != contract.ExitDone {
					t.Fatalf("exit %d: %s", code, &p.says)
				}
				dir = base + "/" + r.in(r.path, base, uid(0))
				info, err := os.Stat(dir)
				must(t, err)
				if info.Mode().Perm() != 0o777 {
					t.Errorf("the directory has the mode %o", info.Mode().Perm())
				}
				wrote := p.message()
				if k != nil {
					wrote = k.pvs["pvc-"+uid(0)]
				}
				if want := r.in(r.pv, base, uid(0)); !strings.Contains(strings.ReplaceAll(wrote, " ", ""), strings.Split(want, `,"nodeAffinity`)[0]) {
					t.Errorf("it writes %s, want %s", wrote, want)
				}
				if strings.Contains(r.pv, onHost1) != strings.Contains(wrote, onHost1) {
					t.Errorf("it writes the node affinity %s", wrote)
				}
			}
			for range 2 {
				cmd, _ := p.script(name, "delete")
				if code := exitOf(t, cmd.Run()); code != contract.ExitDone {
					t.Fatalf("exit %d: %s", code, &p.says)
				}
				if _, err := os.Stat(dir); !os.IsNotExist(err) {
					t.Errorf("the directory is not deleted: %v", err)
				}
			}
			cmd, _ := p.script(name, "expand")
			if code := exitOf(t, cmd.Run()); code != contract.ExitUsage {
				t.Errorf("another verb: exit %d: %s", code, &p.says)
			}
		})
	}
}

func TestScriptsRefuseWhatADirectoryIsNot(t *testing.T) {
	for name := range recipes {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, contract.Provision, 1, func(_ int, r *contract.Request) { r.VolumeMode = "Block" })
			k := p.serve()
			cmd, base := p.script(name, "provision")
			const want = "claim: a directory cannot be a raw block device: request volumeMode Filesystem\n"
			if code := exitOf(t, cmd.Run()); code != contract.ExitBadRequest || p.says.String() != want || len(k.asked) > 0 {
				t.Errorf("exit %d: %s: %q", code, &p.says, k.asked)
			}
			if made, err := os.ReadDir(base); err != nil || len(made) > 0 {
				t.Errorf("it creates %v, %v", made, err)
			}
		})
	}
	p := newPod(t, contract.Provision, 1)
	p.serve()
	cmd, _ := p.script("directory", "provision")
	if code := exitOf(t, cmd.Run()); code != contract.ExitBadRequest || !strings.Contains(p.says.String(), "request ReadWriteOnce") {
		t.Errorf("many nodes: exit %d: %s", code, &p.says)
	}
	for variable, value := range map[string]string{"FLEX_DIRECTORY": "../x", "FLEX_DIRECTORY_MODE": "rwx"} {
		p := newPod(t, contract.Provision, 1)
		p.env[variable] = value
		cmd, base := p.script("nfs", "provision")
		if code := exitOf(t, cmd.Run()); code != contract.ExitConfig || !strings.HasPrefix(p.says.String(), "the parameter directory") {
			t.Errorf("%s: exit %d: %s", variable, code, &p.says)
		}
		if made, err := os.ReadDir(base); err != nil || len(made) > 0 {
			t.Errorf("it creates %v, %v", made, err)
		}
	}
}

// A config without a key is wrong until an administrator corrects it: to try again would hide that.
func TestScriptsNameTheKeyThatTheConfigLacks(t *testing.T) {
	lacking := map[string][]string{"btrfs": {"FLEX_BASE_DIR"}, "xfs": {"FLEX_BASE_DIR"}, "loop": {"FLEX_BASE_DIR"}}
	for name, r := range recipes {
		for i := 0; i < len(r.properties); i += 2 {
			if r.properties[i] != "HOSTNAME" { // the kubelet's
				lacking[name] = append(lacking[name], r.properties[i])
			}
		}
		if r.replace == nil || name == "seed" {
			lacking[name] = append(lacking[name], "FLEX_BASE_DIR")
		}
	}
	for name, variables := range lacking {
		for _, variable := range variables {
			p := newPod(t, contract.Provision, 1, func(_ int, r *contract.Request) { r.AccessModes = []string{"ReadWriteOnce"} })
			p.serve()
			cmd, base := p.script(name, "provision")
			cmd.Env = append(cmd.Env, variable+"=")
			key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, "FLEX_")), "_", "-")
			if code, said := exitOf(t, cmd.Run()), p.says.String(); code != contract.ExitConfig || said != "the config lacks the key "+key+"\n" {
				t.Errorf("%s without %s: exit %d: %s", name, variable, code, said)
			}
			if made, err := os.ReadDir(base); err != nil || len(made) > 0 {
				t.Errorf("%s creates %v, %v", name, made, err)
			}
		}
	}
}

// inBatches runs a script as the container of a config's script does.
func inBatches(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Path, cmd.Args = programs(t)+"/flex", append([]string{"flex", "each", "8"}, cmd.Args...)
}

func TestTheFileServerServesABatch(t *testing.T) {
	const n = 20
	block := func(n int, r *contract.Request) {
		if n == 4 {
			r.VolumeMode = "Block"
		}
	}
	p := newPod(t, contract.Provision, n, block)
	k := p.serve()
	cmd, base := p.script("file-server", "provision")
	inBatches(t, cmd)
	if code := exitOf(t, cmd.Run()); code != contract.ExitBadRequest || len(k.pvs) != n-1 {
		t.Fatalf("exit %d, %d PVs: %s", code, len(k.pvs), &p.says)
	}
	got := p.results()
	for i := range n {
		want := fmt.Sprintf(`"path":"/exports/pvc-%s"`, uid(i))
		if r := got[uid(i)]; i != 4 && (!r.IsDone() || r.Message != "" || !strings.Contains(k.pvs["pvc-"+uid(i)], want)) || i == 4 && (r.IsDone() || contract.ForClaim(r.Message) == "") {
			t.Errorf("claim %d has %+v, and the PV %s", i, r, k.pvs["pvc-"+uid(i)])
		}
	}
	p.env["FLEX_VERB"] = "delete"
	cmd, _ = p.script("file-server", "delete")
	inBatches(t, cmd)
	if code := exitOf(t, cmd.Run()); code != contract.ExitDone || len(p.results()) != n {
		t.Errorf("exit %d: %s", code, &p.says)
	}
	if left, err := os.ReadDir(base); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// flex is enough for a recipe, and kubectl would be the largest program of its image.
func TestScriptsUseNoKubectl(t *testing.T) {
	found, err := filepath.Glob("../scripts/*-provisioner.sh")
	must(t, err)
	for _, path := range found {
		content, err := os.ReadFile(path)
		must(t, err)
		if strings.Contains(string(content), "kubectl ") && !strings.Contains(path, "environment") {
			t.Errorf("%s uses kubectl", path)
		}
	}
}

// The largest size of a claim, rounded up to sectors, is a negative number of the box's shell. An expand
// to it once ended well, and nothing had grown.
func TestABoxRefusesASizeThatItCannotCount(t *testing.T) {
	volumes, programs := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(volumes, "pvc-1"), 0o700))
	must(t, os.WriteFile(filepath.Join(volumes, "pvc-1", "disk"), make([]byte, 1024), 0o600))
	for program, script := range map[string]string{
		"tgtadm":    "echo 'Target 1: iqn.2026-01.example:pvc-1'\necho 'Backing store path: " + volumes + "/pvc-1/disk'\n",
		"tgt-admin": "",
	} {
		must(t, os.WriteFile(filepath.Join(programs, program), []byte("#!/bin/sh\n"+script), 0o700))
	}
	for size, want := range map[string]int{"1024": 0, "9223372036854775807": contract.ExitCapacity} {
		cmd := exec.Command("sh", "../scripts/iscsi-target-on-box.sh", "expand", volumes, "pvc-1", "iqn.2026-01.example:pvc-1", size, "none")
		cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
		said, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("an expand to %s bytes ends with %d, want %d: %s, %v", size, code, want, said, err)
		}
	}
}
