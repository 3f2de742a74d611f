package config_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// A copy of a config is a ConfigMap that the API server accepts.
func TestTheDataOfASourceCanBeWritten(t *testing.T) {
	data := map[string]string{"script": "#!/bin/bash\n", "image": "localhost/disk:v1", "verbs": "provision,delete", "base-dir": "/srv"}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: "gold"}, Data: data}
	got := config.SourceOf(cm, &storagev1.StorageClass{}).Written()
	if !maps.Equal(got, data) {
		t.Errorf("got %q, want %q", got, data)
	}
	for key := range got {
		if why := validation.IsConfigMapKey(key); len(why) > 0 {
			t.Errorf("%s: %v", key, why)
		}
	}
}
