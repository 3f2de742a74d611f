package config_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// What has been corrected may delete a volume only where it certainly looks for it in its storage.
func TestTwoConfigsReachTheSameStorage(t *testing.T) {
	template := func(text string) func(*config.Config) { return func(c *config.Config) { c.Template = []byte(text) } }
	mounts := `{"spec":{"containers":[{"name":"provisioner","args":["a"]}],"volumes":[{"name":"v","configMap":{"name":"ceph-a"}}]}}`
	for name, tt := range map[string]struct {
		change func(*config.Config)
		same   bool
	}{
		"the same":                  {func(*config.Config) {}, true},
		"another image":             {func(c *config.Config) { c.Image = "localhost/other:v2" }, true},
		"another timeout":           {func(c *config.Config) { c.Timeout++ }, true},
		"another command":           {template(`{"spec":{"containers":[{"name":"provisioner","args":["b"]}],"volumes":[{"name":"v","configMap":{"name":"ceph-a"}}]}}`), true},
		"another scheduling":        {func(c *config.Config) { c.Scheduling = corev1.PodSpec{NodeSelector: map[string]string{"a": "b"}} }, true},
		"another property":          {func(c *config.Config) { c.Properties = map[string]string{"backend": "b"} }, false},
		"another Secret of files":   {func(c *config.Config) { c.FilesSecret = "other" }, false},
		"another Secret of the env": {func(c *config.Config) { c.EnvSecret = "other" }, false},
		"another ServiceAccount":    {func(c *config.Config) { c.ServiceAccount = "other" }, false},
		"another ConfigMap":         {func(c *config.Config) { c.Source.Name = "other" }, false},
		"other nodes":               {func(c *config.Config) { c.RunOn = config.RunOnSelected }, false},
		"another volume":            {template(`{"spec":{"containers":[{"name":"provisioner","args":["a"]}],"volumes":[{"name":"v","configMap":{"name":"ceph-b"}}]}}`), false},
		"another variable":          {template(`{"spec":{"containers":[{"name":"provisioner","env":[{"name":"SERVER","value":"b"}]}],"volumes":[{"name":"v","configMap":{"name":"ceph-a"}}]}}`), false},
		"another init container":    {template(`{"spec":{"initContainers":[{"name":"i","env":[{"name":"SERVER"}]}],"containers":[{"name":"provisioner"}],"volumes":[{"name":"v","configMap":{"name":"ceph-a"}}]}}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			made := config.Config{Properties: map[string]string{"backend": "a"}, RunOn: config.RunAnywhere, Template: []byte(mounts)}
			today := made
			tt.change(&today)
			if got := config.SameStorage(made, today); got != tt.same {
				t.Errorf("SameStorage is %t", got)
			}
		})
	}
}
