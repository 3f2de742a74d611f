package jobs_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// provisioner returns the container whose exit code is the verdict.
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

// variables returns the container's variables as its process would see them: the kubelet reads $$
// as $ and expands $(NAME) with the variables before it.
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
