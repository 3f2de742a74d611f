package reason

import (
	"fmt"
	"strings"
)

// startRemedies are what an administrator does about a Job that Kubernetes cannot start, by
// Kubernetes' own reason. %[1]s is the Job's namespace, %[2]s its ConfigMap.
var startRemedies = map[string]string{
	"ErrImagePull":               correctImage,
	"ImagePullBackOff":           correctImage,
	"ErrImageNeverPull":          correctImage,
	"InvalidImageName":           correctImage,
	"InspectFailed":              correctImage,
	"Failed":                     correctImage, // only of an image, see WithStartRemedy
	"CreateContainerConfigError": "create what is missing in the namespace %[1]s, or correct env-from-secret or the pod-template of the ConfigMap %[1]s/%[2]s",
	"FailedMount":                "create what is missing in the namespace %[1]s, or correct files-from-secret or the volumes in the pod-template of the ConfigMap %[1]s/%[2]s",
	"FailedCreate":               "change the quota, webhook or policy that refuses the pod, or correct the pod-template of the ConfigMap %[1]s/%[2]s",
	"Unschedulable":              "label a node that reaches the storage, or correct node-selector, or tolerations and resources in the pod-template, of the ConfigMap %[1]s/%[2]s",
}

const (
	correctImage = "correct " + imageOfRun + ", image-pull-policy, or imagePullSecrets in the " +
		"pod-template, of the ConfigMap %[1]s/%[2]s"
	// imageOfRun is where the image of a run is named.
	imageOfRun = "the key image (or --script-image of the dispatcher, where the config has a script alone)"
)

// WithStartRemedy returns the note of a Job that Kubernetes cannot start, with what to do about it. why
// is Kubernetes' own reason. config is the name of the Job's ConfigMap, in its namespace. A reason
// that is not known adds nothing. Failed is the kubelet's for all that is in the way of a container.
func WithStartRemedy(why string, note Note, namespace, config string) Note {
	const most = 500
	remedy := startRemedies[why]
	if remedy == "" || why == "Failed" && !strings.Contains(strings.ToLower(note.Cause), "image") {
		return note
	}
	return Note{abridge(note.Cause, most), "an administrator must " + fmt.Sprintf(remedy, namespace, config)}
}
