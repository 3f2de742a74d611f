package contract

import "strings"

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
