package input

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
)

// options returns what the class says about the PV's source.
func options(in Sources, c class) (mapper.Options, error) {
	o := mapper.Options{Kind: strings.ToLower(c.connection), FSType: c.fsType, FlexDriver: c.flexDriver}
	o.Host = mapper.NVMeHost{NQN: c.nqn, ID: hostID(c)}
	write, err := parseBool("write-initiator", c.writeInitiator)
	if write {
		o.Initiator = c.initiator
	}
	var cephErr, multiErr, fabricErr, portalsErr error
	o.Multiattach, multiErr = parseBool("multiattach", c.multiattach)
	o.Ceph, cephErr = ceph(in, c)
	o.Fabric, fabricErr = fabric(c)
	o.Portals, portalsErr = networks("portals", c.portals)
	return o, errors.Join(err, multiErr, cephErr, fabricErr, portalsErr)
}

// fabric returns what the config says about the nodes' Fibre Channel ports.
func fabric(c class) (mapper.FibreChannel, error) {
	f := mapper.FibreChannel{Ports: len(worldWide(c.wwpns))}
	if c.sharedLUN == "" {
		return f, nil
	}
	shared, err := parseBool("shared-lun", c.sharedLUN)
	f.SharedLUN = &shared
	return f, err
}

// networks reads a list of addresses and networks.
func networks(property, text string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	var faults []error
	for _, word := range splitList(text) {
		network, err := netip.ParsePrefix(word)
		if address, addressErr := netip.ParseAddr(word); addressErr == nil && address.Zone() == "" {
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("property %s: %q must be an address, or a network of the form 192.0.2.0/24", property, word))
		}
		all = append(all, network)
	}
	return all, errors.Join(faults...)
}

func ceph(in Sources, c class) (mapper.Ceph, error) {
	mounter, mounterErr := oneOf("mounter", c.mounter, "", "rbd", "rbd-nbd")
	secret, secretErr := secretReference(c.cephSecret)
	key, keyErr := cephKey(in)
	return mapper.Ceph{
		ClusterID:     c.clusterID,
		ImageFeatures: c.features,
		Mounter:       mounter,
		Secret:        secret,
		Key:           key,
		User:          c.cephUser,
	}, errors.Join(mounterErr, secretErr, keyErr)
}

func secretReference(text string) (corev1.SecretReference, error) {
	if text == "" {
		return corev1.SecretReference{}, nil
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" {
		return corev1.SecretReference{}, fmt.Errorf("property ceph-secret: %q must have the form NAMESPACE/NAME", text)
	}
	return corev1.SecretReference{Namespace: namespace, Name: name}, nil
}

// The file in the config's files-from-secret, and the variable from its env-from-secret, that hold
// the Ceph user's key. Cinder never sends it.
const (
	cephKeyFile     = "ceph.key"
	cephKeyVariable = "CEPH_KEY"
)

// cephKey reads the key from its file, or from its variable where there is no file.
func cephKey(in Sources) (credentials.Secret, error) {
	data, err := in.secret(cephKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return credentials.Secret(in.Env[cephKeyVariable]), nil
	}
	if err != nil {
		return "", err
	}
	return keyIn(string(data)), nil
}

// keyIn returns the key in a file: the whole text, or the line "key = …" of a keyring.
func keyIn(text string) credentials.Secret {
	for line := range strings.Lines(text) {
		if name, key, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == "key" {
			return credentials.Secret(strings.TrimSpace(key))
		}
	}
	return credentials.Secret(strings.TrimSpace(text))
}
