package contract

import (
	"strconv"
	"strings"
)

// EnvPrefix begins the name of every variable that the dispatcher sets. It keeps a property named
// "path" or "ld-preload" harmless.
const EnvPrefix = "FLEX_"

// EnvName returns the variable of a property: FLEX_ and the name in upper case, with an underscore
// for every character outside [A-Z0-9].
func EnvName(property string) string {
	return EnvPrefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		default:
			return '_'
		}
	}, property)
}

// API properties. The dispatcher sets them, so no config and no class may.
const (
	PropVerb           = "verb"
	PropPVName         = "pv-name"
	PropUsername       = "username"
	PropGroup          = "group"
	PropStorageClass   = "storage-class"
	PropServiceAccount = "service-account"
	PropKubeAPI        = "kube-api"
	PropSize           = "size"
	PropClaimName      = "claim-name"
	PropClaimNamespace = "claim-namespace"
	PropClaimUID       = "claim-uid"
	PropAccessModes    = "access-modes"
	PropVolumeMode     = "volume-mode"
	PropMountOptions   = "mount-options"
	PropReclaimPolicy  = "reclaim-policy"
	PropSelectedNode   = "selected-node"
	PropSelectedZone   = "selected-zone"
	PropSelectedHost   = "selected-hostname"
	PropUndo           = "undo"
	PropListedVolume   = "listed-volume"
)

// APIProperties returns every reserved property. The selected node's zone is selected-zone, since
// the original design's example has a property of its own named zone.
func APIProperties() []string {
	return []string{
		PropVerb, PropPVName, PropUsername, PropGroup, PropStorageClass, PropServiceAccount, PropKubeAPI,
		PropSize, PropClaimName, PropClaimNamespace, PropClaimUID, PropAccessModes, PropVolumeMode,
		PropMountOptions, PropReclaimPolicy, PropSelectedNode, PropSelectedZone, PropSelectedHost, PropUndo, PropListedVolume,
	}
}

// Properties that flex each sets for the command of one request. No config and no class may have
// one of these names: flex would read an administrator's text as its own.
const (
	PropPV             = "pv"
	PropTerminationLog = "termination-log"
)

// EachProperties returns the properties that flex each sets, and the dispatcher does not.
func EachProperties() []string { return []string{PropPV, PropTerminationLog} }

// TopologyHostname is the label of a node, and the key of Request.SelectedTopology, by which a PV
// says on which node its volume is.
const TopologyHostname = "kubernetes.io/hostname"

// Variable is a property, and its value in the environment of a run.
type Variable struct{ Property, Value string }

// OwnVariables returns what the environment of a run for this request alone has, and that of a
// batch has not. An image that does not know batches would apply it to all requests.
func (r Request) OwnVariables() []Variable {
	own := []Variable{
		{PropPVName, r.PVName},
		{PropUsername, r.Username},
		{PropGroup, r.Group},
		{PropSize, strconv.FormatInt(r.Size, 10)},
		{PropClaimName, r.Name},
		{PropClaimNamespace, r.Namespace},
		{PropClaimUID, r.UID},
		{PropAccessModes, strings.Join(r.AccessModes, ",")},
		{PropVolumeMode, r.VolumeMode},
		{PropMountOptions, strings.Join(r.MountOptions, ",")},
		{PropReclaimPolicy, r.ReclaimPolicy},
		{PropSelectedNode, r.SelectedNode},
		{PropSelectedZone, r.SelectedZone},
		{PropSelectedHost, r.SelectedTopology[TopologyHostname]},
	}
	if r.ListedVolume != "" {
		own = append(own, Variable{PropListedVolume, r.ListedVolume})
	}
	return own
}
