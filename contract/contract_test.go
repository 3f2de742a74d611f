package contract_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

func TestRequestsSurviveTheirFile(t *testing.T) {
	want := contract.Requests{Version: contract.Version, Verb: contract.Provision, Items: []contract.Request{{
		UID: "u", PVName: "pvc-u", Namespace: "app", Name: "data", Class: "gold", Size: 1 << 40, AccessModes: []string{"ReadWriteOnce"},
		VolumeMode: "Block", MountOptions: []string{"hard"}, AttributesClass: "fast", ReclaimPolicy: "Delete", SelectedNode: "n",
		SelectedZone: "z", Username: "alice", Group: "a,b", Undo: true, Labels: map[string]string{"a": "b\n\"<ü>"},
		Annotations: map[string]string{"c": "d"}, Properties: map[string]string{"zone": "west"},
	}}}
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := contract.DecodeRequests([]byte(text))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func TestRequestOfANewerDispatcherIsReadIfItsVersionIsKnown(t *testing.T) {
	for text, word := range map[string]string{
		`{"version":"flex-provisioner.io/v1","verb":"delete","requests":[{"uid":"u","moreToCome":1}],"batch":7}`: "",
		`{"version":"flex-provisioner.io/v2","verb":"delete","requests":[]}`:                                     "flex-provisioner.io/v2",
		`{"verb":"delete","requests":[]}`:                               "version",
		`{"version":"flex-provisioner.io/v1","verb":"","requests":[]}`:  "verb",
		`{"version":"flex-provisioner.io/v1","verb":"resize"}`:          "resize",
		`{"version":"flex-provisioner.io/v1","verb":"list","requests":`: "decode",
		``: "decode",
	} {
		_, err := contract.DecodeRequests([]byte(text))
		if (err == nil) != (word == "") || err != nil && !strings.Contains(err.Error(), word) {
			t.Errorf("%s: error %v, want one with %q", text, err, word)
		}
	}
}

// An image in another language has these names written down. They can change only with the version.
func TestNamesOfTheFirstVersionStayAsTheyAre(t *testing.T) {
	for got, want := range map[string]string{
		contract.Version: "flex-provisioner.io/v1", contract.ProvisionerName: "flex-provisioner.io",
		contract.OldPluginName: "kubernetes.io/flex-provisioner", contract.AnnClaimUID: "flex-provisioner.io/claim-uid",
		contract.AnnRevision: "flex-provisioner.io/config-revision", contract.AnnProvisionedBy: "pv.kubernetes.io/provisioned-by",
		contract.AnnFileSystem: "flex-provisioner.io/file-system-size", contract.AnnResizer: "volume.kubernetes.io/storage-resizer",
		contract.FinalizerStorage: "flex-provisioner.io/storage", jobs.FinalizerRecord: "flex-provisioner.io/record",
		contract.LabelProvisioner: "flex-provisioner.io/provisioner", contract.RequestFile: "/etc/flex/request.json",
		contract.PVFile: "/etc/flex/pv.json", contract.SecretDir: "/etc/flex/secret", contract.TerminationLog: "/dev/termination-log",
		contract.Container: "provisioner", contract.ClaimPrefix: "claim: ", contract.PVName("u"): "pvc-u",
		string(contract.Provision): "provision", string(contract.Delete): "delete", string(contract.Expand): "expand", string(contract.List): "list",
	} {
		if got != want {
			t.Errorf("%q is %q in version 1", got, want)
		}
	}
	for code, want := range map[int]contract.Verdict{
		0: contract.Done, 64: contract.BadConfig, 65: contract.BadRequest, 69: contract.TryAgain, 73: contract.NoCapacity,
		75: contract.TryAgain, 77: contract.NoCredentials, 78: contract.BadConfig,
	} {
		if got := contract.VerdictOf(code); got != want {
			t.Errorf("exit code %d means %s, in version 1 %s", code, got, want)
		}
	}
}

func TestNoTwoAPIPropertiesBecomeOneVariable(t *testing.T) {
	seen := map[string]string{}
	for _, name := range slices.Concat(contract.APIProperties(), contract.EachProperties()) {
		env := contract.EnvName(name)
		if other, taken := seen[env]; taken {
			t.Errorf("%s and %s both become %s", name, other, env)
		}
		seen[env] = name
	}
}

// flex each gives a request of a batch the variables that the dispatcher gives to one alone.
func TestOwnVariablesAreAPIPropertiesOfOneRequest(t *testing.T) {
	shared := []string{contract.PropVerb, contract.PropStorageClass, contract.PropServiceAccount, contract.PropKubeAPI, contract.PropUndo}
	for _, v := range (contract.Request{ListedVolume: "v"}).OwnVariables() {
		shared = append(shared, v.Property)
	}
	all := contract.APIProperties()
	slices.Sort(all)
	if slices.Sort(shared); !slices.Equal(shared, all) {
		t.Errorf("shared by a batch and own to a request: %q, and all: %q", shared, all)
	}
}
