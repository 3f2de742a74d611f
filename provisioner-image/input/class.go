package input

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// class holds the StorageClass's parameters and the config's properties, as text.
type class struct {
	// The volume.
	volumeType, zone, snapshot string
	hints, hintAnnotations     string
	multiattach                string
	name, metadata, cluster    string
	smartClone, adopt          string
	// How it is exported, and to which client.
	attachAPI, multipath         string
	initiator, host, ip          string
	connector                    string
	wwpns, wwnns, sharedLUN      string
	portals                      string
	nqn, nvmeHostID              string
	connection, writeInitiator   string
	fsType, csiFSType            string
	flexDriver                   string
	clusterID, features, mounter string
	cephSecret, cephUser         string
	// The login.
	cloudConfig, cloud string
	// How many tasks of a batch are executed at a time.
	parallel string
}

// SharedInitiator and sharedHost are how all nodes present themselves, unless the class has its own
// names and unless the cluster's UID is known.
const (
	SharedInitiator = "iqn.2026-11.io.flex-provisioner:nodes"
	sharedHost      = "flex-provisioner"
)

// names returns how the nodes of a cluster present themselves to a storage. Two clusters with the
// same names would be one host to an array, and share its volumes. The UID begins early in the
// host's name, since arrays cut long names.
func names(clusterUID string) (initiator, host string) {
	if clusterUID == "" {
		return SharedInitiator, sharedHost
	}
	return "iqn.2026-11.io.flex-provisioner:" + clusterUID, "flex-" + clusterUID
}

// properties returns the one list of properties, each with the field that takes it.
func (c *class) properties() map[string]*string {
	return map[string]*string{
		"type":             &c.volumeType,
		"availability":     &c.zone,
		"snapshot":         &c.snapshot,
		"scheduler-hints":  &c.hints,
		"hint-annotations": &c.hintAnnotations,
		"multiattach":      &c.multiattach,
		"volume-name":      &c.name,
		"volume-metadata":  &c.metadata,
		"cluster":          &c.cluster,
		"smartclone":       &c.smartClone,
		"adopt":            &c.adopt,
		"attach-api":       &c.attachAPI,
		"multipath":        &c.multipath,
		"initiator":        &c.initiator,
		"write-initiator":  &c.writeInitiator,
		"host":             &c.host,
		"connector":        &c.connector,
		"ip":               &c.ip,
		"wwpns":            &c.wwpns,
		"wwnns":            &c.wwnns,
		"shared-lun":       &c.sharedLUN,
		"portals":          &c.portals,
		"nqn":              &c.nqn,
		"nvme-hostid":      &c.nvmeHostID,
		"connection":       &c.connection,
		"fsType":           &c.fsType,
		csiFSType:          &c.csiFSType,
		"flex-driver":      &c.flexDriver,
		"cluster-id":       &c.clusterID,
		"image-features":   &c.features,
		"mounter":          &c.mounter,
		"ceph-secret":      &c.cephSecret,
		"ceph-user":        &c.cephUser,
		"cloud-config":     &c.cloudConfig,
		"cloud":            &c.cloud,
		"parallel":         &c.parallel,
	}
}

// csiFSType is how classes of CSI drivers write fsType.
const csiFSType = "csi.storage.k8s.io/fstype"

// oneFileSystem reads both ways to write the file system.
func (c *class) oneFileSystem() error {
	if c.fsType != "" && c.csiFSType != "" && c.fsType != c.csiFSType {
		return fmt.Errorf("property fsType is %q, but %s is %q: remove one of them", c.fsType, csiFSType, c.csiFSType)
	}
	c.fsType = cmp.Or(c.fsType, c.csiFSType)
	return nil
}

// isFormer reports whether a property is one that former images read, and that the verb does not
// need: the config revisions of their volumes have it. It chose the source of a new PV, of which
// ceph-csi's is the only one now.
func isFormer(verb contract.Verb, name, value string) bool {
	return strings.EqualFold(name, "rbd-source") && (verb != contract.Provision || value == "" || value == "ceph-csi")
}

// readClass refuses unknown properties: a volume of a misspelt type would get the default type
// silently. Names are read in any case, as standalone-cinder and the plugin of earlier Kubernetes
// did (CreateVolume in pkg/volume/cinder/cinder_util.go).
func readClass(verb contract.Verb, given map[string]string, clusterUID string) (class, error) {
	c := class{writeInitiator: "true", smartClone: "false"}
	c.initiator, c.host = names(clusterUID)
	known := c.properties()
	rightNames := map[string]string{}
	for name := range known {
		rightNames[strings.ToLower(name)] = name
	}
	writtenAs := map[string]string{}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		rightName, ok := rightNames[strings.ToLower(name)]
		switch {
		case isFormer(verb, name, given[name]):
		case !ok:
			faults = append(faults, fmt.Errorf("property %q is unknown; this image supports %s",
				name, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		case writtenAs[rightName] != "":
			faults = append(faults, fmt.Errorf("properties %q and %q are one property: remove one of them",
				writtenAs[rightName], name))
		default:
			*known[rightName], writtenAs[rightName] = given[name], name
		}
	}
	faults = append(faults, c.oneFileSystem())
	return c, errors.Join(faults...)
}

// How many tasks of a run are executed at a time. A batch has no more than the most.
const (
	defaultParallel = 8
	mostParallel    = contract.MaxBatch
)

func parallel(c class) (int, error) {
	if c.parallel == "" {
		return defaultParallel, nil
	}
	n, err := strconv.Atoi(c.parallel)
	if err != nil || n < 1 || n > mostParallel {
		return defaultParallel, fmt.Errorf("property parallel: %q must be a number from 1 to %d", c.parallel, mostParallel)
	}
	return n, nil
}

// parseBool reads a truth value. An empty text is false. A text that is neither true nor false is a
// fault.
func parseBool(property, text string) (bool, error) {
	if text == "" {
		return false, nil
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("property %s: %q must be true or false", property, text)
	}
	return yes, nil
}

// splitList returns the words of a list that commas separate.
func splitList(text string) []string {
	var words []string
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// oneOf returns the word that is given, and the first one where none is. Any other text is a fault.
func oneOf[W ~string](property, text string, words ...W) (W, error) {
	if text == "" {
		return words[0], nil
	}
	var names []string
	for _, word := range words {
		if string(word) == text {
			return word, nil
		}
		names = append(names, string(word))
	}
	return "", fmt.Errorf("property %s: %q must be one of %s", property, text, strings.Join(names, ", "))
}
