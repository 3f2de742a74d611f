package conform

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/onedocument"
)

// Provocation says how an administrator makes an image refuse a claim: by the claim, or by keys of the
// ConfigMap, of which a copy is made then, with a class of its own.
type Provocation struct {
	Size        *resource.Quantity                  `json:"size,omitempty"`
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
	VolumeMode  *corev1.PersistentVolumeMode        `json:"volumeMode,omitempty"`
	Data        map[string]string                   `json:"data,omitempty"`
}

// Provocations are those of a file, by promise.
type Provocations map[string]Provocation

// ReadProvocations reads a file.
func ReadProvocations(text []byte) (Provocations, error) {
	var out Provocations
	_, err := onedocument.Parse(text)
	if err = errors.Join(err, yaml.UnmarshalStrict(text, &out)); err != nil {
		return nil, fmt.Errorf("read how promises are provoked: %w", err)
	}
	for name := range out {
		switch name {
		case refuses, badConfig, badCredentials, noCapacity:
		default:
			return nil, fmt.Errorf("%s cannot be provoked: must be one of %s, %s, %s, %s", name, refuses, badConfig, badCredentials, noCapacity)
		}
	}
	return out, nil
}

// tooLarge is a size that no storage has. It fits into the 64 bits of a request.
var tooLarge = resource.MustParse("4Ei")

// ofRefuses returns what refuses a claim, and whether the administrator says so.
func (r *Run) ofRefuses() (Provocation, bool) {
	if p, ok := r.Provoke[refuses]; ok {
		return p, true
	}
	return Provocation{Size: &tooLarge}, false
}

// provoke creates a claim that is to be refused, and waits until a run of it has ended.
func (t *trial) provoke(ctx context.Context, p Provocation) (*claim, ran, error) {
	class := t.Class.Name
	if len(p.Data) > 0 {
		var err error
		if class, err = t.copyClass(ctx, t.name, p.Data); err != nil {
			return nil, ran{}, err
		}
	}
	c, err := t.claim(ctx, p.change(class))
	if err != nil {
		return nil, ran{}, err
	}
	first, err := t.firstRun(ctx, c, contract.Provision, ran.ended)
	if err == nil {
		now, _ := t.Client.CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{}) // it is only shown
		if now != nil {
			t.show("the claim "+c.Name, now.Annotations)
		}
	}
	return c, first, err
}

// change makes a claim one that is to be refused.
func (p Provocation) change(class string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.StorageClassName = &class
		if p.Size != nil {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = *p.Size
		}
		if p.AccessModes != nil {
			c.Spec.AccessModes = p.AccessModes
		}
		if p.VolumeMode != nil {
			c.Spec.VolumeMode = p.VolumeMode
		}
	}
}

// copyClass creates a class like that of the run, whose ConfigMap has some other keys. Its name ends with
// what it is for.
func (t *trial) copyClass(ctx context.Context, of string, data map[string]string) (string, error) {
	name, src := t.namespace.Name+"-"+of, t.Config.Source
	class := t.Class.DeepCopy()
	class.ObjectMeta, class.Provisioner = t.owned(name), t.Class.Provisioner
	delete(class.Parameters, contract.ParamConfig)
	if class.Parameters == nil {
		class.Parameters = map[string]string{}
	}
	class.Parameters[contract.ParamConfigNamespace] = src.Namespace
	if _, err := t.Client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("create a class: %w", err)
	}
	t.copies = append(t.copies, name)
	all := src.Written()
	maps.Copy(all, data)
	labels := t.labels()
	labels[contract.LabelType], labels[contract.LabelStorageClass] = contract.TypeConfig, name
	_, err := t.Client.CoreV1().ConfigMaps(src.Namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: src.Namespace, Name: name, Labels: labels, OwnerReferences: t.owned(name).OwnerReferences}, Data: all,
	}, metav1.CreateOptions{})
	if err != nil {
		err = fmt.Errorf("create a ConfigMap like %s/%s: %w", src.Namespace, src.Name, err)
	}
	return name, err
}

// deleteCopies deletes the classes of this run, and their ConfigMaps.
func (r *Run) deleteCopies(ctx context.Context) error {
	var failed error
	for _, name := range r.copies {
		failed = errors.Join(failed,
			r.deleteOwn(r.Client.StorageV1().StorageClasses().Delete(ctx, name, metav1.DeleteOptions{}), "the class "+name),
			r.deleteOwn(r.Client.CoreV1().ConfigMaps(r.Config.Source.Namespace).Delete(ctx, name, metav1.DeleteOptions{}), "the ConfigMap "+name))
	}
	return failed
}
