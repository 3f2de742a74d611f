package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/internal/quantity"
)

// DescribedPV is what a container of a config with write-pv: dispatcher writes into its termination
// message: the part of the PV that only the container knows. Such a container has no API token.
type DescribedPV struct {
	Source       corev1.PersistentVolumeSource `json:"source"`
	NodeAffinity *corev1.VolumeNodeAffinity    `json:"nodeAffinity,omitempty"`
	Capacity     contract.Capacity             `json:"capacity,omitempty"`
}

// Description returns what the container of a finished pod has said of its PV.
func Description(pods []*corev1.Pod) (string, error) {
	pod := NewestPod(pods)
	if pod == nil {
		return "", errors.New("no pod exists any more that describes the volume")
	}
	terminated := terminatedState(pod)
	if terminated == nil {
		return "", errors.New("the container " + contract.Container + " has not ended")
	}
	return terminated.Message, nil
}

// ReadDescribedPV parses what a container has said of its PV. Its error says what the image must
// write.
func ReadDescribedPV(description string) (DescribedPV, error) {
	var described DescribedPV
	decoder := json.NewDecoder(strings.NewReader(description))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&described)
	if err == nil {
		err = described.checkPrintable()
	}
	if err == nil && described.Capacity != "" {
		_, err = quantity.Parse(string(described.Capacity))
	}
	if err != nil {
		return described, fmt.Errorf("with write-pv: dispatcher the container must write {\"source\": {...}} to %s: %w", contract.TerminationLog, err)
	}
	return described, nil
}

// checkPrintable returns an error if a text in a description has control characters. They would
// stand in the arguments of a node's programs, and on the terminals of all who look at the PV. It
// checks what was decoded, since two decodings of one text may differ: a key may be given twice
// with two spellings, and a list may follow a longer one.
func (o DescribedPV) checkPrintable() error {
	decoded, err := json.Marshal(o)
	if err != nil {
		return err
	}
	var all any
	if err := json.Unmarshal(decoded, &all); err != nil {
		return err
	}
	if text, found := quote.ControlIn(all); found {
		return fmt.Errorf("the text %s has control characters", quote.Name(text))
	}
	return nil
}

// Complete returns the PV: its request's skeleton, completed by what the container described. It
// rejects what the skeleton's namespace may not use. The API server validates the rest.
func (o DescribedPV) Complete(skeleton *corev1.PersistentVolume, allowed jobs.Allowance) (*corev1.PersistentVolume, error) {
	pv := skeleton.DeepCopy()
	pv.Spec.PersistentVolumeSource = o.Source
	pv.Spec.NodeAffinity = o.NodeAffinity
	if o.Capacity != "" {
		size, err := quantity.Parse(string(o.Capacity))
		if err != nil {
			return nil, err
		}
		if asked := skeleton.Spec.Capacity[corev1.ResourceStorage]; size.Cmp(asked) < 0 {
			return nil, fmt.Errorf("the container describes a capacity of %s, and the claim requests %s", o.Capacity, asked.String())
		}
		pv.Spec.Capacity[corev1.ResourceStorage] = size
	}
	if err := checkMountOptions(pv.Spec.MountOptions); err != nil {
		return nil, err
	}
	if err := CheckNode(pv.Name, o.Source, allowed); err != nil {
		return nil, err
	}
	return pv, nil
}

// checkMountOptions returns an error if an option has blanks or control characters, as
// deploy/base/pv-source-policy.yaml refuses them: a program of a node would read several options, or
// lines.
func checkMountOptions(options []string) error {
	for _, option := range options {
		if strings.ContainsFunc(option, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }) {
			return fmt.Errorf("the mount option %s has blanks or control characters. Remedy: correct the mountOptions of the storage class", quote.Name(option))
		}
	}
	return nil
}

// CheckNode returns why the volume of a PV may not be in a directory of a node. The rule is that of
// deploy/base/pv-source-policy.yaml, which judges the dispatcher, too. It is checked here so that
// the event of the claim says what the image must change. kubectl flex try judges the container's
// own PV by it.
func CheckNode(name string, source corev1.PersistentVolumeSource, allowed jobs.Allowance) error {
	want := allowed.VolumePaths(name)
	for _, path := range nodePaths(source) {
		switch {
		case len(want) == 0:
			return fmt.Errorf("the container describes the directory %s of a node, but the dispatcher's --allow names no host-path for the namespace of the "+
				"config. Remedy: let the image describe another source, or add a host-path to --allow", path)
		case !slices.Contains(want, path):
			return fmt.Errorf("the container describes the directory %s of a node, which must be %s: the name of the PersistentVolume, directly below a host-path of "+
				"--allow. Remedy: let the image create its volume there; the name is in %s", path, strings.Join(want, " or "), contract.EnvName(contract.PropPVName))
		}
	}
	if h := source.HostPath; h != nil && !slices.Contains(directories, ptr.Deref(h.Type, corev1.HostPathUnset)) {
		return fmt.Errorf("the container describes a hostPath of the type %q, which must be Directory or DirectoryOrCreate. Remedy: let the image set "+
			"source.hostPath.type", ptr.Deref(h.Type, corev1.HostPathUnset))
	}
	return nil
}

// directories are the types of a hostPath that a volume may have.
var directories = []corev1.HostPathType{corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate}

func nodePaths(s corev1.PersistentVolumeSource) []string {
	var paths []string
	if s.HostPath != nil {
		paths = append(paths, s.HostPath.Path)
	}
	if s.Local != nil {
		paths = append(paths, s.Local.Path)
	}
	return paths
}
