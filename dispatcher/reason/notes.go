package reason

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Notes that name nothing, or what their arguments name.
const (
	// SelectedAgain is about a claim that came back to a full node. Its arguments: the node, for how long it is full, the verdict, the outcome and the
	// Job of the run that found it so, another node, and how often the claim was returned.
	SelectedAgain = "the node %s is selected again, and had no room %s ago: %s (%s) of the Job %s; the node %s may have room, so no run is started here " +
		"(return %d since the last run)"
	// NotSupported is about a config revision without the verb delete. Its argument is the annotation of the PV that names a revision.
	NotSupported = "the config under which the volume was made does not serve the verb delete: name a revision that does in the PV's annotation %s, " +
		"or set the PV's policy to Retain"
	// Unproven is about a PV that proves no provision.
	Unproven = "its volume may be in use, so nothing deletes it. Remedy: complete the PersistentVolume by hand. With the policy Retain it can be deleted, and its " +
		"volume stays in the storage"
	// KeptByPolicy and KeptByRival are about a volume that another PV may stand for, whose own PV is set to Retain or does not exist.
	KeptByPolicy = "its volume may be in use, so the policy of this PersistentVolume is set to Retain. Remedy: if no pod needs the volume, delete the other " +
		"PersistentVolume. When that does not exist any more, set the policy to Delete, and the volume is deleted with its claim"
	KeptByRival = "the volume may be in use, so nothing deletes it. Remedy: if no pod needs the volume, delete that PersistentVolume"
	// Retained is about a PV that its claim cannot be bound to and that is retained.
	Retained = "its policy is Retain, so it is kept: delete it with its volume, or set its policy to Delete and it is taken back"
	// Mismatched is about a PV that its claim cannot be bound to and that another may be bound to.
	Mismatched = "it may be in use, so nothing is undone: delete whatever uses it, or mend it by hand. With the policy Retain it can be deleted, " +
		"and its volume is kept for the next attempt of this claim"
	// Forgotten is about what a run may have made and an administrator has given up, Kept about what the policy Retain may have kept.
	Forgotten = "an administrator has given its record up"
	Kept      = "its PersistentVolume, with the policy Retain, may have been deleted to keep it"
	// Released is about what a run may have made whose record is released.
	Released = "its record is released, and its PersistentVolume does not exist any more"
	// LeftRetained is about what a run may have made whose PV proves nothing, and is retained.
	LeftRetained = "its PersistentVolume has the policy Retain"
	// Unclaimed is about a PV that names no claim by its UID.
	Unclaimed = "so its volume is not deleted. Remedy: name a claim by its UID. With the policy Retain it can be deleted, and its volume is kept"
	// Spare is about a PV of a claim that was bound to another, with the policy Retain.
	Spare = "a PersistentVolume was made for the claim, and Kubernetes has bound the claim to another. With the policy Retain it is kept, with its volume. " +
		"Remedy: if nobody needs it, delete it, and then its volume in the storage"
)

// BehindProbe says that a run waits behind a Job that cannot start.
func BehindProbe(job, why string) string {
	return "its run waits, since the Job " + job + ", with the same config and nodes, cannot start: " + why +
		". It is launched when that Job has started or has ended"
}

// LostNode says that nothing is started while the node of a pod that was deleted by force is not Ready.
func LostNode(pod, node string) string {
	return fmt.Sprintf("%s was deleted without a report that it has ended from its node %s, which is not Ready: it may still run, and nothing else is started "+
		"for the claim. Remedy: bring the node back, or, when it is off for certain, say so: kubectl taint nodes %s %s=nodeshutdown:NoExecute",
		pod, node, node, corev1.TaintNodeOutOfService)
}

// Unconfirmed says that nothing is started before the deadline of a pod that was deleted by force.
func Unconfirmed(job string, until time.Time) string {
	return fmt.Sprintf("the pod of the Job %s was deleted without its node's word that it has ended: it may run until its deadline, %s, and nothing else is "+
		"started for the claim before", job, until.UTC().Format(time.RFC3339))
}

// OutsideOfTopologies says that a selected node is in none of the topologies that its class allows. The scheduler selects no such node.
func OutsideOfTopologies(node, class string) string {
	return fmt.Sprintf("the selected node %s is outside of the allowedTopologies of the class %s", node, class)
}

// NotSelected says that the config's pod selects other nodes than the selected one.
func NotSelected(node, class string) string {
	return fmt.Sprintf("the selected node %s takes no run of the class %s: node-selector or pod-template of its config exclude the node. "+
		"Remedy: name the nodes that take runs in the class's allowedTopologies, which the scheduler follows", node, class)
}

// Repelled says that a selected node has a taint that the config's pod does not tolerate.
func Repelled(node, taint, class string) string {
	return fmt.Sprintf("the selected node %s takes no run of the class %s: the pod-template of its config does not tolerate the taint %s. Remedy: add the toleration, or "+
		"name the nodes that take runs in the class's allowedTopologies, which the scheduler follows",
		node, class, taint)
}

// MissingNode says that a run would have to go to a node that does not exist. policy is what the config says of that.
func MissingNode(node, policy string) string {
	return fmt.Sprintf("%s does not exist any more, and the config says node-gone: %s. Remedy: bring the node back; or write into the ConfigMap "+
		"node-gone: any-node, if the storage can be reached from other nodes, or node-gone: forget, to give up what is on it", node, policy)
}

// SharedHostname says that several nodes have the hostname by which a PV names the node of its volume.
func SharedHostname(pv, host string, nodes []string) string {
	return fmt.Sprintf("the PersistentVolume %s names the node of its volume by the label %s=%s, and the nodes %s all have it: nothing runs for the volume, since it might run on "+
		"the wrong node. Remedy: correct that label of the node that does not have the volume (kubectl label --overwrite node NODE %s=NODE). A kubelet may have set it itself",
		pv, corev1.LabelHostname, host, strings.Join(nodes, " and "), corev1.LabelHostname)
}

// NoFurtherAttempt says that nothing is launched after the last attempt.
func NoFurtherAttempt(attempts int, expand bool) string {
	next := "when the claim's request or the config changes"
	if expand {
		next = "when the claim asks for more, or its PersistentVolume is moved to another config revision"
	}
	return fmt.Sprintf("no further attempt after %d, the config's max-attempts; it is tried again %s", attempts, next)
}

// NextAttempt says when the next attempt starts. It may start sooner if the node was full and the scheduler is to select another.
func NextAttempt(pause time.Duration, selectsAgain bool) string {
	next := "next attempt in " + pause.Round(time.Second).String()
	if selectsAgain {
		next += ", sooner on another node: the scheduler is to choose again"
	}
	return next
}

// KeptOnRecord says that a volume that another PV may stand for is kept by the record of a Job. forget is the annotation that releases it.
func KeptOnRecord(job, forget string) string {
	return "the volume may be in use, so nothing deletes it. Remedy: annotate the Job " + job + " with " + forget +
		": its record is given up, and the volume stays in the storage"
}

// RetainedInDoubt says that a run with policy Retain ended as if it had written the PV, and that PV does not exist. forget is the annotation that
// releases its record.
func RetainedInDoubt(job, forget string) string {
	return "the Job " + job + " ended with exit code 0, and its PersistentVolume, with the policy Retain, does not exist: the volume is kept. Remedy: delete it " +
		"in the storage if nobody needs it, then annotate the Job with " + forget
}
