package order

import (
	"fmt"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Keys of a volume's metadata, beside volume.KeyUID. They tell the storage administrator whose it is.
const (
	keyNamespace = contract.Domain + "claim-namespace"
	keyName      = contract.Domain + "claim-name"
	keyPV        = contract.Domain + "pv-name"
	keyCluster   = contract.Domain + "cluster"
)

// maxGiB keeps the size in what storages and their clients count with.
const maxGiB = 1<<31 - 1

// spec is the volume that the claim wants: its size rounded up to GiB, since Cinder knows no less.
func spec(r contract.Request, c class) (volume.Spec, error) {
	gib := (r.Size-1)>>30 + 1
	if r.Size <= 0 || gib > maxGiB {
		return volume.Spec{}, fmt.Errorf("a size of %d bytes cannot be served", r.Size)
	}
	return volume.Spec{
		UID:      r.UID,
		Name:     r.PVName,
		SizeGiB:  int(gib),
		Type:     c.volumeType,
		Zone:     c.zone,
		Metadata: metadata(r, c),
		Connector: volume.Connector{
			Initiator: c.initiator,
			Host:      c.host,
			IP:        c.ip,
			Platform:  "x86_64",
			OSType:    "linux",
		},
	}, nil
}

func metadata(r contract.Request, c class) map[string]string {
	m := map[string]string{
		volume.KeyUID: r.UID,
		keyNamespace:  clean(r.Namespace),
		keyName:       clean(r.Name),
		keyPV:         clean(r.PVName),
	}
	if c.cluster != "" {
		m[keyCluster] = clean(c.cluster)
	}
	return m
}

// maxValue is Cinder's limit for a metadata value.
const maxValue = 255

// clean keeps what Cinder's filters can search for: they read values as Python literals, and a quote
// or a backslash makes them find nothing.
func clean(value string) string {
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`'"\`, r) {
			return '_'
		}
		return r
	}, value)
	return value[:min(len(value), maxValue)]
}
