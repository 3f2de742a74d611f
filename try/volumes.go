package try

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/try/box"
)

// tokenVolume is how the volume of a pod's token begins, which admission adds.
const tokenVolume = "kube-api-access"

// Modes that the kubelet gives files and directories, where nothing else is said.
const (
	fileMode, dirMode, anyoneMode = 0o644, 0o755, 0o777
)

// volume returns what a pod mounts at a path.
func (w *world) volume(k *fakecluster.Container, mount corev1.VolumeMount) (box.Volume, error) {
	out := box.Volume{Path: mount.MountPath, ReadOnly: mount.ReadOnly, Mode: dirMode}
	if mount.SubPath != "" || mount.SubPathExpr != "" {
		return out, fmt.Errorf("the mount %s has a subPath, which is not tried", mount.MountPath)
	}
	if strings.HasPrefix(mount.Name, tokenVolume) {
		out.ReadOnly = true
		for _, name := range slices.Sorted(maps.Keys(w.api.Files())) {
			out.Files = append(out.Files, box.File{Name: name, Content: w.api.Files()[name], Mode: fileMode})
		}
		return out, nil
	}
	i := slices.IndexFunc(k.Pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
	if i < 0 {
		return out, fmt.Errorf("the pod has no volume %s", mount.Name)
	}
	return w.from(out, k, k.Pod.Spec.Volumes[i])
}

// from fills a volume from its source.
func (w *world) from(out box.Volume, k *fakecluster.Container, v corev1.Volume) (box.Volume, error) {
	switch {
	case v.DownwardAPI != nil:
		return ofAnnotations(out, k, v.DownwardAPI), nil
	case v.EmptyDir != nil:
		out.Mode = anyoneMode
	case v.HostPath != nil:
		out.Shared = "path." + url.PathEscape(v.HostPath.Path)
	case v.PersistentVolumeClaim != nil:
		out.Shared, out.Mode = "claim."+v.PersistentVolumeClaim.ClaimName, anyoneMode
	case v.Secret != nil:
		return w.ofSecret(out, v.Secret)
	case v.ConfigMap != nil:
		return w.ofConfigMap(out, v.ConfigMap)
	default:
		return out, fmt.Errorf("the volume %s has a source that is not tried", v.Name)
	}
	return out, nil
}

// ofAnnotations are the files of the contract.
func ofAnnotations(out box.Volume, k *fakecluster.Container, from *corev1.DownwardAPIVolumeSource) box.Volume {
	out.ReadOnly = true
	for _, item := range from.Items {
		mode := uint32(fileMode)
		if item.Mode != nil {
			mode = uint32(*item.Mode) //nolint:gosec // a mode
		}
		out.Files = append(out.Files, box.File{Name: item.Path, Content: []byte(k.File(item.Path)), Mode: mode})
	}
	return out
}

func (w *world) ofSecret(out box.Volume, from *corev1.SecretVolumeSource) (box.Volume, error) {
	secret := w.trial.secret(from.SecretName)
	if secret == nil {
		return out, w.trial.lacks("Secret", from.SecretName)
	}
	return withFiles(out, secret.Data, from.Items, from.DefaultMode), nil
}

func (w *world) ofConfigMap(out box.Volume, from *corev1.ConfigMapVolumeSource) (box.Volume, error) {
	cm := w.trial.configMap(from.Name)
	if cm == nil {
		return out, w.trial.lacks("ConfigMap", from.Name)
	}
	data := maps.Clone(cm.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range cm.Data {
		data[key] = []byte(value)
	}
	return withFiles(out, data, from.Items, from.DefaultMode), nil
}

// withFiles adds the keys of an object as files: all of them, or those of items.
func withFiles(out box.Volume, data map[string][]byte, items []corev1.KeyToPath, mode *int32) box.Volume {
	out.ReadOnly = true
	if len(items) == 0 {
		for _, key := range slices.Sorted(maps.Keys(data)) {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		file := box.File{Name: path.Clean(item.Path), Content: data[item.Key], Mode: fileMode}
		if m := item.Mode; m != nil {
			file.Mode = uint32(*m) //nolint:gosec // a mode
		} else if mode != nil {
			file.Mode = uint32(*mode) //nolint:gosec // a mode
		}
		out.Files = append(out.Files, file)
	}
	return out
}
