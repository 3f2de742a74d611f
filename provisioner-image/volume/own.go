package volume

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// keyMade is the key of the time at which a run asked for the volume. Cinder copies the whole
// metadata of a volume, and its name, to a volume that is restored from a backup of it. The copy is
// created later than the time says, or has the same time as an older volume; both show that no run
// made it.
const keyMade = "flex-provisioner.io/made-at"

// clocks is how far the clocks of a run and of the storage may be apart. A backup takes longer to
// be made and restored.
const clocks = 15 * time.Minute

// Left is a volume that carries the claim's UID and that a run left alone.
type Left struct {
	Volume
	// Why says why it is not taken for a volume that a run made.
	Why string
}

// owner is what a run knows of the volumes that were made for its claim.
type owner struct {
	uid string
	// cluster is the UID of the cluster, empty where it is not known.
	cluster string
	// name is the one that runs give, adopt the ID of the volume that the config names for the
	// claim.
	name, adopt string
	// made is the ID of a volume that this run knows to be the claim's, stamp the time of its own
	// request.
	made, stamp string
	// host is how the image presents itself to the storage.
	host string
	// before is when the PV was created, if there is one.
	before time.Time
	// seen are volumes that an earlier look of the same run has judged.
	seen []Volume
}

// sift splits the volumes that carry the claim's UID, oldest first, into those that its runs made
// and the others.
func (o owner) sift(all []Volume) (ours []Volume, left []Left) {
	var stamps []string
	for _, v := range o.seen {
		stamps = append(stamps, v.Metadata[keyMade])
	}
	for _, v := range all {
		if slices.ContainsFunc(o.seen, func(s Volume) bool { return s.ID == v.ID }) {
			continue
		}
		why := o.whyNotOurs(v, stamps)
		stamps = append(stamps, v.Metadata[keyMade])
		if why == "" {
			ours = append(ours, v)
			continue
		}
		left = append(left, Left{Volume: v, Why: why})
	}
	return ours, left
}

// whyNotOurs returns why a volume with the claim's UID is not one that a run made, or "". The
// stamps are those of older volumes.
func (o owner) whyNotOurs(v Volume, stamps []string) string {
	switch {
	case v.isOfAnother(o.cluster):
		return "by its metadata it belongs to the cluster with the UID " + v.Metadata[KeyClusterUID]
	case o.made != "" && v.ID == o.made, v.IsAdopted() && v.ID == o.adopt:
		return ""
	case v.IsAdopted():
		return "it is marked as adopted, but the config's key adopt does not assign it to this claim"
	case v.Name != o.name:
		return fmt.Sprintf("its name is not %q, as a run for this claim would have named it", o.name)
	case v.userBeside(o.host) != "":
		return "it is in use by " + v.userBeside(o.host)
	default:
		return o.whyCopy(v, stamps)
	}
}

// whyCopy returns why the volume may be a copy of the one that a run made, or "".
func (o owner) whyCopy(v Volume, stamps []string) string {
	stamp := v.Metadata[keyMade]
	switch {
	case slices.Contains(stamps, stamp):
		return "it may be a copy, such as a restored backup: an older volume has the same marks"
	case stamp != "" && stamp == o.stamp:
		return ""
	case v.isCopy():
		return fmt.Sprintf("it is a copy, such as a restored backup: by its marks the original was created at %s", stamp)
	case !o.before.IsZero() && v.Created.After(o.before.Add(clocks)):
		return "it may be a copy, such as a restored backup: it is younger than the PersistentVolume"
	default:
		return ""
	}
}

// isOfAnother reports whether the volume belongs to another cluster.
func (v Volume) isOfAnother(cluster string) bool {
	its := v.Metadata[KeyClusterUID]
	return cluster != "" && its != "" && its != cluster
}

// userBeside returns who uses the volume beside the image, or "".
func (v Volume) userBeside(host string) string {
	for _, u := range v.Users {
		if name, isHost := strings.CutPrefix(u, "host "); !isHost || !IsHost(name, host) {
			return u
		}
	}
	return ""
}

// notInHosts matches what a storage leaves out of a host's name.
var notInHosts = regexp.MustCompile(`[^\p{L}\p{N}.-]|[^\x{0}-\x{ff}]`)

// IsHost reports whether a storage that shows a host by one name means the host with the other: it
// may keep the name in lower case, and without the characters that no name on a network has.
func IsHost(shown, name string) bool { return shown == name || asShown(shown) == asShown(name) }

func asShown(name string) string {
	name = strings.NewReplacer(" ", "-", "_", "-").Replace(strings.ToLower(name))
	return strings.Trim(notInHosts.ReplaceAllString(name, ""), ".-")
}

// isCopy reports whether the volume was created at another time than its metadata say.
func (v Volume) isCopy() bool {
	made, err := time.Parse(time.RFC3339Nano, v.Metadata[keyMade])
	return err == nil && apart(v.Created, made) > clocks
}

func apart(a, b time.Time) time.Duration { return a.Sub(b).Abs() }
