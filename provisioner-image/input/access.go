package input

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// access returns how the volume is exported, and how the nodes present themselves. Without multipath
// some drivers export to the first of many ports only (cinder/volume/drivers/hpe/hpe_3par_fc.py,
// _create_host).
func access(in Sources, c class) (volume.Access, error) {
	method, methodErr := oneOf("attach-api", c.attachAPI, in.Methods...)
	wwpns := worldWide(c.wwpns)
	multipath, multipathErr := parseBool("multipath", cmp.Or(c.multipath, strconv.FormatBool(len(wwpns) > 1)))
	extra, extraErr := furtherKeys(c.connector)
	a := volume.Access{
		Method: method,
		Client: volume.Client{
			Initiator: c.initiator,
			Host:      c.host,
			IP:        c.ip,
			Platform:  "x86_64",
			OSType:    "linux",
			Multipath: multipath,
			WWPNs:     wwpns,
			WWNNs:     worldWide(c.wwnns),
			NQN:       c.nqn,
			HostID:    hostID(c),
			Extra:     extra,
		},
	}
	return a, errors.Join(methodErr, multipathErr, extraErr, checkClient(a.Client))
}

// furtherKeys reads a JSON object of what a storage asks for beside the keys that have a property
// of their own.
func furtherKeys(text string) (map[string]any, error) {
	if text == "" {
		return nil, nil
	}
	var keys map[string]any
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		return nil, fmt.Errorf("property connector: must be a JSON object: %w", err)
	}
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if volume.IsClientField(key) {
			faults = append(faults, fmt.Errorf("property connector: %q must not be set here; another property or this image sets it", key))
		}
	}
	return keys, errors.Join(faults...)
}

// nqnOfUUID is the form of an NVMe name that holds the host's ID.
const nqnOfUUID = "nqn.2014-08.org.nvmexpress:uuid:"

// hostID returns the NVMe host's ID: the one that is given, or the one in the host's name. Linux
// refuses a name with the ID of another, so nodes that connect by this name need an ID that goes
// with it.
func hostID(c class) string {
	if c.nvmeHostID != "" {
		return c.nvmeHostID
	}
	id, ok := strings.CutPrefix(c.nqn, nqnOfUUID)
	if !ok || !uuidForm.MatchString(id) {
		return ""
	}
	return id
}

// worldWide spells names as the OpenStack connector does. The kernel writes 0x before each
// (/sys/class/fc_host).
func worldWide(text string) []string {
	return splitList(strings.NewReplacer(":", "", "0x", "").Replace(strings.ToLower(text)))
}

var (
	uuidForm      = regexp.MustCompile(`^[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}$`)
	wwnForm       = regexp.MustCompile(`^[0-9a-f]{16}$`)
	initiatorForm = regexp.MustCompile(`^(iqn\.[0-9]{4}-[0-9]{2}\.[[:alnum:].:-]+|eui\.[[:xdigit:]]{16}|naa\.[[:xdigit:]]{16,32})$`)
)

// checkClient finds what a backend or Kubernetes would refuse later.
func checkClient(c volume.Client) error {
	var faults []error
	if c.Initiator != "" && !initiatorForm.MatchString(c.Initiator) {
		faults = append(faults, fmt.Errorf("property initiator: %q must be an iqn, eui or naa name", c.Initiator))
	}
	if _, err := netip.ParseAddr(c.IP); c.IP != "" && err != nil {
		faults = append(faults, fmt.Errorf("property ip: %q must be an IP address", c.IP))
	}
	faults = append(faults, checkWorldWide("wwpns", c.WWPNs), checkWorldWide("wwnns", c.WWNNs))
	if c.NQN != "" && !strings.HasPrefix(c.NQN, "nqn.") {
		faults = append(faults, fmt.Errorf("property nqn: %q must be a name of the form nqn.YYYY-MM…", c.NQN))
	}
	if c.HostID != "" && !uuidForm.MatchString(c.HostID) {
		faults = append(faults, fmt.Errorf("property nvme-hostid: %q must be a UUID", c.HostID))
	}
	return errors.Join(faults...)
}

func checkWorldWide(property string, names []string) error {
	var faults []error
	for _, name := range names {
		if !wwnForm.MatchString(name) {
			faults = append(faults, fmt.Errorf("property %s: %q must be a name of 16 hexadecimal digits", property, name))
		}
	}
	return errors.Join(faults...)
}
