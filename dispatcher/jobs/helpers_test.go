package jobs_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares an object with the YAML file of this name in testdata.
func golden(t *testing.T, name string, obj any) {
	t.Helper()
	got, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); look, then go test -update:\n%s", path, diff)
	}
}

const uid = "6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50"

// configOf parses a config of the class gold with these keys beside the least that one needs.
func configOf(t *testing.T, reclaim string, keys map[string]string) config.Config {
	t.Helper()
	src := config.Source{
		Namespace: "flex-provisioner", Name: "gold", Class: "gold", Reclaim: reclaim, Binding: "WaitForFirstConsumer",
		Data: map[string]string{
			"image": "localhost/gold:v1", "service-account-name": "gold", "verbs": "provision,delete",
			"use-nfs-server": "10.10.2.4",
		},
		Parameters: map[string]string{"fsType": "ext4"},
	}
	maps.Copy(src.Data, keys)
	cfg, faults := config.Parse(src, contract.ProvisionerName)
	if len(faults) > 0 {
		t.Fatal(faults.ToAggregate())
	}
	return cfg
}

func class() *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Provisioner: contract.ProvisionerName}
}

func claim(changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "app", Name: "data", UID: uid,
			Labels: map[string]string{"app": "web"},
			Annotations: map[string]string{
				"volume.kubernetes.io/storage-provisioner": contract.ProvisionerName,
				"team": "blue",
			},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("gold"),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

// provision is the plan of a claim's first run.
func provision(cfg config.Config, c *corev1.PersistentVolumeClaim) jobs.Plan {
	request := jobs.Request(c, class(), cfg, "west")
	return jobs.Plan{
		Config: cfg, Verb: contract.Provision, Request: request, PV: jobs.Skeleton(request, cfg, contract.ProvisionerName),
		Hash: jobs.Hash(request), Number: 1, Attempt: 1, Clean: true, KubeAPI: "https://10.0.0.1:6443",
	}
}

func build(t *testing.T, p jobs.Plan) *batchv1.Job {
	t.Helper()
	job, err := jobs.Build(p)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// provisioner is the one container whose exit is the verdict.
func provisioner(t *testing.T, job *batchv1.Job) corev1.Container {
	t.Helper()
	for _, c := range job.Spec.Template.Spec.Containers {
		if c.Name == contract.Container {
			return c
		}
	}
	t.Fatal("the Job has no container provisioner")
	return corev1.Container{}
}

// variables are the container's, as its process would see them: the kubelet reads $$ as $ and expands
// $(NAME) with the variables before it.
func variables(t *testing.T, c corev1.Container) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range c.Env {
		out[v.Name] = expand(v.Value, out)
	}
	return out
}

func expand(text string, known map[string]string) string {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		switch end := indexFrom(text, i, ')'); {
		case text[i] == '$':
			out = append(out, '$')
		case text[i] == '(' && end > 0:
			name := text[i+1 : end]
			if value, found := known[name]; found {
				out = append(out, value...)
			} else {
				out = append(out, text[i-1:end+1]...)
			}
			i = end
		default:
			out = append(out, '$', text[i])
		}
	}
	return string(out)
}

func indexFrom(text string, from int, b byte) int {
	for i := from; i < len(text); i++ {
		if text[i] == b {
			return i
		}
	}
	return -1
}
