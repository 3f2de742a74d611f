package runs_test

import (
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// What admission would refuse to the dispatcher is refused before, in words that name what the
// image must change: the path of a volume on a node is that of the policy on node directories, and
// so is the type of its hostPath.
func TestADescribedVolumeOnANodeIsInADirectoryOfItsOwn(t *testing.T) {
	const own, shape = "/srv/flex/pvc-" + fixture.UID, "which must be /srv/flex/pvc-" + fixture.UID
	for name, tt := range map[string]struct{ source, refusal string }{
		"hostPath":                  {`"hostPath": {"path": "` + own + `", "type": "Directory"}`, ""},
		"hostPath that is made":     {`"hostPath": {"path": "` + own + `", "type": "DirectoryOrCreate"}`, ""},
		"local":                     {`"local": {"path": "` + own + `"}`, ""},
		"below the second one":      {`"local": {"path": "/data/pvc-` + fixture.UID + `"}`, ""},
		"not on a node":             {`"nfs": {"server": "filer", "path": "/"}`, ""},
		"the listed one":            {`"local": {"path": "/srv/flex"}`, shape},
		"in the volume":             {`"local": {"path": "` + own + `/link"}`, shape},
		"deeper":                    {`"local": {"path": "/srv/flex/gold/pvc-` + fixture.UID + `"}`, shape},
		"another's":                 {`"hostPath": {"path": "/srv/flex/pvc-other", "type": "Directory"}`, shape},
		"of another name":           {`"local": {"path": "/srv/flex/gold"}`, shape},
		"with a slash":              {`"local": {"path": "` + own + `/"}`, shape},
		"with two slashes":          {`"local": {"path": "/srv/flex//pvc-` + fixture.UID + `"}`, shape},
		"with dots":                 {`"local": {"path": "/srv/flex/../flex/pvc-` + fixture.UID + `"}`, shape},
		"beside":                    {`"local": {"path": "/srv/flex-other/pvc-` + fixture.UID + `"}`, shape},
		"the node":                  {`"hostPath": {"path": "/", "type": "Directory"}`, shape + " or /data/pvc-" + fixture.UID},
		"hostPath of no type":       {`"hostPath": {"path": "` + own + `"}`, "must be Directory or DirectoryOrCreate"},
		"hostPath of an empty type": {`"hostPath": {"path": "` + own + `", "type": ""}`, "source.hostPath.type"},
		"a socket":                  {`"hostPath": {"path": "` + own + `", "type": "Socket"}`, `the type "Socket"`},
		"a disk":                    {`"hostPath": {"path": "` + own + `", "type": "BlockDevice"}`, `the type "BlockDevice"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := complete(t, tt.source, jobs.Allowance{HostPaths: []string{"/srv/flex", "/data"}})
			switch {
			case tt.refusal == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case tt.refusal != "" && (err == nil || !strings.Contains(err.Error(), tt.refusal) || !strings.Contains(err.Error(), "Remedy: ")):
				t.Errorf("the refusal is %v, which lacks %q or a remedy", err, tt.refusal)
			}
		})
	}
}

// A control character in a text of a description would stand in the arguments of a node's programs,
// and on the terminals of all who look at the PV.
func TestADescriptionHasNoControlCharacters(t *testing.T) {
	for _, description := range []string{
		`{"source": {"nfs": {"server": "filer\n", "path": "/"}}}`,
		`{"source": {"iscsi": {"targetPortal": "192.0.2.1:3260", "portals": ["192.0.2.2\u001b[31m"], "iqn": "iqn.2026-01.example:a", "lun": 1}}}`,
		`{"source": {"csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"a": "\u0000"}}}}`,
		`{"source": {"csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"a\u0085": ""}}}}`,
		`{"source": {"local": {"path": "/"}}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["\t"]}]}]}}}`,
		`{"source": {"nfs": {"server": "filer\n", "path": "/"}}, "Source": {"nfs": {"path": "/"}}}`,
		`{"source": {"nfs": {"server": "filer\n", "path": "/"}}, "source": {"nfs": {"path": "/"}}}`,
	} {
		_, err := runs.ReadDescribedPV(description)
		if err == nil || !strings.Contains(err.Error(), "has control characters") || strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("%s: %v", description, err)
		}
	}
	if _, err := runs.ReadDescribedPV("{\"source\":\n\t{\"nfs\": {\"server\": \"filer\", \"path\": \"/a ,b\"}}}\n"); err != nil {
		t.Errorf("JSON on several lines: %v", err)
	}
}

// Without --allow for the namespace there is no path that the image could use.
func TestADescribedVolumeOnANodeNeedsAnAllowance(t *testing.T) {
	_, err := complete(t, `"local": {"path": "/srv/flex/pvc-`+fixture.UID+`"}`, jobs.Allowance{RunAsUsers: []int64{0}})
	for _, words := range []string{"the directory /srv/flex/pvc-" + fixture.UID + " of a node", "--allow names no host-path", "Remedy: "} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q is not in: %v", words, err)
		}
	}
}

// To parse some quantities takes minutes, and to compare others a second. The dispatcher would serve
// no other claim meanwhile.
func TestACapacityWithALongExponentIsRefused(t *testing.T) {
	for _, capacity := range []string{`"1e-100"`, `1E-100`, `"1e+100"`, `1e100`} {
		description := `{"source": {"nfs": {"server": "filer", "path": "/a"}}, "capacity": ` + capacity + `}`
		if _, err := runs.ReadDescribedPV(description); err == nil || !strings.Contains(err.Error(), "exponent") {
			t.Errorf("%s is read with the error %v", description, err)
		}
		out := runs.ReadFor(endedBatch(contract.Expand, 1), "one", []*corev1.Pod{exited(1, `{"uid":"one","code":0,"capacity":`+capacity+`}`)}, now)
		if out.Verdict != contract.Unlisted || out.Capacity != nil {
			t.Errorf("a result with the capacity %s is read as %+v", capacity, out)
		}
	}
}

func complete(t *testing.T, source string, allowed jobs.Allowance) (*corev1.PersistentVolume, error) {
	t.Helper()
	described, err := runs.ReadDescribedPV(`{"source": {` + source + `}}`)
	if err != nil {
		t.Fatal(err)
	}
	return described.Complete(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + fixture.UID}}, allowed)
}

// A program of a node would read several options in one with a blank, or several lines.
func TestADescribedPVHasNoBlankInAMountOption(t *testing.T) {
	described, err := runs.ReadDescribedPV(`{"source": {"nfs": {"server": "filer", "path": "/a"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	for option, refused := range map[string]bool{
		"hard": false, "nfsvers=4.1": false, "context=system_u:object_r:nfs_t:s0": false,
		"hard rw": true, "hard\trw": true, "hard\n": true, "hard\u00a0rw": true, "hard\u0000": true, "\u2028hard": true,
	} {
		skeleton := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{MountOptions: []string{"noatime", option}}}
		if _, err := described.Complete(skeleton, jobs.Allowance{}); (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "Remedy") {
			t.Errorf("a PV with the mount option %q: %v", option, err)
		}
	}
}
