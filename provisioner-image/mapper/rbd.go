package mapper

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// rbd maps to a static volume of ceph-csi, whose node plugin the cluster must run: kubelets have had
// no plugin of their own since Kubernetes 1.31.
type rbd struct{}

// image is Cinder's description of an rbd connection. Cinder never sends the key.
type image struct {
	Name     imagePath `json:"name"`
	Username cephName  `json:"auth_username"`
}

// Names of the CSI drivers.
const (
	cephDriver = "rbd.csi.ceph.com"
	nvmeDriver = "csi.nvmf.com"
)

// Check requires what Cinder does not send: ceph-csi's name of the cluster, and the key.
func (rbd) Check(w Want) error {
	c := w.Ceph
	p := promises{name: "an rbd image", manyRead: true, manyReadDevice: true, manyWrite: true}
	if err := p.check(w); err != nil {
		return err
	}
	if c.ClusterID == "" {
		return unsupported("the class lacks the parameter cluster-id, the name of the Ceph cluster in ceph-csi's configuration")
	}
	if c.Secret.Name == "" && c.Key == "" {
		return unsupported("the key of the Ceph user is unknown: name a Secret with userID and userKey in the class" +
			" (ceph-secret: NAMESPACE/NAME), or add the file ceph.key to the Secret that the config names in files-from-secret")
	}
	return nil
}

// Map builds the source, and the Secret with its key.
func (rbd) Map(c volume.Connection, w Want) (Mapping, error) {
	var i image
	if err := decode(c, &i); err != nil {
		return Mapping{}, err
	}
	if i.Name == "" {
		return Mapping{}, unsupported("the storage does not report the image of the volume")
	}
	pool, name, _ := strings.Cut(string(i.Name), "/")
	user := cmp.Or(w.Ceph.User, string(i.Username), "admin")
	m := Mapping{}
	ref := w.Ceph.Secret
	if ref.Name == "" {
		ref = w.SecretRef
		m.Secret = cephSecret(user, w)
	}
	m.Source.CSI = csi(pool, name, w)
	m.Source.CSI.NodeStageSecretRef = &ref
	return m, nil
}

func csi(pool, name string, w Want) *corev1.CSIPersistentVolumeSource {
	return &corev1.CSIPersistentVolumeSource{
		Driver:           cephDriver,
		VolumeHandle:     name,
		FSType:           w.fsType(),
		VolumeAttributes: staticVolume(pool, w.Ceph),
	}
}

// staticVolume marks the image for ceph-csi as one that ceph-csi did not make.
func staticVolume(pool string, c Ceph) map[string]string {
	attributes := map[string]string{
		"clusterID":     c.ClusterID,
		"pool":          pool,
		"staticVolume":  "true",
		"imageFeatures": cmp.Or(c.ImageFeatures, "layering"),
	}
	if c.Mounter != "" {
		attributes["mounter"] = c.Mounter
	}
	return attributes
}

// cephSecret returns the key under the names that ceph-csi reads.
func cephSecret(user string, w Want) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: w.secretMeta(),
		Data:       map[string][]byte{"userID": []byte(user), "userKey": []byte(w.Ceph.Key.Reveal())},
	}
}
