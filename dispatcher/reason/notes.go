package reason

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Notes that name nothing, or what their arguments name.
const (
	// SelectedAgain is about a claim that came back to a full node. Its arguments: the node, for
	// how long it is full, the verdict, the outcome and the Job of the run that found it so,
	// another node, and how often the claim was returned.
	SelectedAgain = "the scheduler selected the node %s again. It had no room %s ago (%s, %s, Job %s). The node %s may have room, so no Job is created " +
		"(return %d since the last run)"
	// Forgotten is about what a run may have made and an administrator has given up, Kept about
	// what the policy Retain may have kept.
	Forgotten = "an administrator has released its record"
	Kept      = "its PersistentVolume had the reclaim policy Retain, and may have been deleted on purpose"
	// Released is about what a run may have made whose record is released.
	Released = "its record was released, and its PersistentVolume no longer exists"
	// LeftRetained is about what a run may have made whose PV proves nothing, and is retained.
	LeftRetained = "the reclaim policy of its PersistentVolume is Retain"
)

// Notes with a remedy that name nothing. Others say more before their cause.
var (
	// Unproven is about a PV that proves no provision.
	Unproven = Note{
		"its volume may be in use, and is not deleted",
		"correct the PersistentVolume. To keep the data, set the reclaim policy to Retain before you delete the PersistentVolume",
	}
	// KeptByPolicy and KeptByRival are about a volume that another PV may stand for, whose own PV
	// is set to Retain or does not exist.
	KeptByPolicy = Note{
		"the volume may be in use, so the reclaim policy of this PersistentVolume is now Retain",
		"if no pod needs the volume, delete the other PersistentVolume. Then set the reclaim policy to Delete, and the volume is deleted with its claim",
	}
	KeptByRival = Note{"the volume may be in use, and is not deleted", "if no pod needs the volume, delete that PersistentVolume"}
	// Retained is about a PV that its claim cannot be bound to and that is retained.
	Retained = Note{
		"its reclaim policy is Retain, so it is kept",
		"delete the PersistentVolume and its volume yourself. Or set the reclaim policy to Delete: the dispatcher then deletes both",
	}
	// Mismatched is about a PV that its claim cannot be bound to and that another may be bound to.
	Mismatched = Note{
		"the volume may be in use, so it is not deleted",
		"delete the pods that use it, or correct the PersistentVolume. To keep the data, set the reclaim policy to Retain before you delete the PersistentVolume. " +
			"The next attempt of this claim then uses this volume",
	}
	// Unclaimed is about a PV that names no claim by its UID.
	Unclaimed = Note{
		"so its volume is not deleted",
		"set claimRef.uid to the UID of its claim. To keep the data, set the reclaim policy to Retain before you delete the PersistentVolume",
	}
	// Spare is about a PV of a claim that was bound to another, with the policy Retain.
	Spare = Note{
		"Kubernetes has bound the claim to another PersistentVolume. The one that was provisioned for it has the reclaim policy Retain, so it is kept with its volume",
		"delete it, and its volume in the storage, if no user needs them",
	}
)

// Reserved is about a PV that names a claim which does not exist. undelete is the command that creates
// it.
func Reserved(undelete string) Note {
	return Note{
		Unclaimed.Cause,
		"create that claim with the volume: " + undelete + ". If you delete it, the volume is deleted as " +
			"well. To keep the data, set the reclaim policy to Retain before you delete the PersistentVolume",
	}
}

// NotSupported is about a config revision without the verb delete.
var NotSupported = Note{
	"the config revision that created the volume does not support the verb delete",
	"move the volume to a revision that supports delete and reaches the same storage: kubectl flex move PV --to=newest. If it has no PersistentVolume, or is to be kept, see docs/troubleshoot.md#deletenotsupported",
}

// RefusedWrite says that the API server refuses a write of the dispatcher. The words of a quota are
// those of k8s.io/apiserver's pkg/admission/plugin/resourcequota (CheckRequest).
func RefusedWrite(cause string) Note {
	remedy := "let policies, webhooks and RBAC allow this write of the dispatcher"
	if strings.Contains(cause, "exceeded quota: ") {
		remedy = "raise that ResourceQuota, or delete it, in the namespace of the object"
	}
	return Note{
		abridge(cause, mostQuoted),
		remedy + ". The dispatcher tries the write again every minute, and continues with everything " +
			"that does not depend on it",
	}
}

// FailedWrite says that a write of the dispatcher fails again and again.
func FailedWrite(cause string) Note {
	return Note{
		abridge(cause, mostQuoted),
		"if the error names a webhook, restore its service, or exempt the dispatcher from the webhook. The dispatcher tries the write again, at least every minute",
	}
}

// BehindProbe says that a run waits behind a Job that cannot start.
func BehindProbe(namespace, job string, why Note) Note {
	return why.After("no Job is created for this claim yet. The Job %s/%s, with the same config and nodes, must start or end first, and cannot start: ", namespace, job)
}

// AllSlotsUsed says what a claim waits for. holders are the Jobs and pods that have the slots.
func AllSlotsUsed(limit int, class string, holders []string) Note {
	const named = 3
	by := strings.Join(holders[:min(len(holders), named)], ", ")
	if more := len(holders) - named; more > 0 {
		by += fmt.Sprintf(" and %d more", more)
	}
	return Note{
		fmt.Sprintf("the class %s has reached its limit of %d Jobs at a time (max-parallel), with %s. The Job for this claim is created when one of them has ended", class, limit, by),
		"if they do not end, find out why from their pods. If there are only too many claims, raise max-parallel",
	}
}

// LostNode says that nothing is started while the node of a pod that was deleted by force is not
// Ready.
func LostNode(pod, node string) Note {
	return Note{
		fmt.Sprintf("%s was force-deleted. Its node %s has not reported the end of the pod, and is not Ready, so the pod may still run. No other Job is started for the claim", pod, node),
		BringBack(node),
	}
}

// BringBack is the remedy for a node that does not confirm the end of a pod. The taint ends the pod, too:
// after a deletion by force nothing would start without it.
func BringBack(node string) string {
	return fmt.Sprintf("bring the node back. If the node is shut down for certain, taint it: kubectl taint nodes %s %s=nodeshutdown:NoExecute", node, corev1.TaintNodeOutOfService)
}

// EndUnreported says that nothing is started before the deadline of a pod that was deleted by force.
func EndUnreported(job string, until time.Time) string {
	return fmt.Sprintf("the pod of the Job %s was force-deleted before its node confirmed that it has ended. The pod may run until its deadline, %s, and no other Job is "+
		"started for the claim before then", job, until.UTC().Format(time.RFC3339))
}

// OutsideOfTopologies says that a selected node is in none of the topologies that its class allows.
// The scheduler selects no such node.
func OutsideOfTopologies(node, class string) string {
	return fmt.Sprintf("the selected node %s is not in the allowedTopologies of the class %s. The scheduler selects no such node: the class has changed since, or the claim's user has set it. "+
		"Remedy, in the second case: remove the annotation volume.kubernetes.io/selected-node from what creates the claim", node, class)
}

// NotSelected says that the config's pod selects other nodes than the selected one.
func NotSelected(node, class string) string {
	return fmt.Sprintf("the selected node %s cannot run a Job of the class %s: node-selector or pod-template of its config exclude the node. "+
		"Remedy: list the nodes that can run the Jobs in the class's allowedTopologies. The scheduler follows them", node, class)
}

// NoHostname says that no PersistentVolume could name the selected node.
func NoHostname(node, class string) string {
	return fmt.Sprintf("the selected node %s does not have the label %s, so no PersistentVolume can name it, and no Job of the class %s is created there. Remedy: kubectl label node %s %s=%s. "+
		"Or list other nodes in the class's allowedTopologies", node, corev1.LabelHostname, class, node, corev1.LabelHostname, node)
}

// Repelled says that a selected node has a taint that the config's pod does not tolerate.
func Repelled(node, taint, class string) string {
	return fmt.Sprintf("the selected node %s cannot run a Job of the class %s: the pod-template of its config does not tolerate the taint %s. Remedy: add the toleration to "+
		"the pod-template, or list the nodes that can run the Jobs in the class's allowedTopologies. The scheduler follows them", node, class, taint)
}

// MissingNode says that a run would have to go to a node that does not exist. policy is what the
// config says of that. The volume of an expand is not given up.
func MissingNode(node, policy string) Note {
	note := Note{
		fmt.Sprintf("%s no longer exists, and the config has node-gone: %s", node, policy),
		"bring the node back. If other nodes reach the storage, set node-gone: any-node in the ConfigMap",
	}
	if policy != "forget" {
		note.Remedy += ". To give up the volume with its data, set node-gone: forget in the ConfigMap"
	}
	return note
}

// SharedHostname says that several nodes have the hostname by which a PV names the node of its
// volume.
func SharedHostname(pv, host string, nodes []string) Note {
	return Note{
		fmt.Sprintf("the nodes %s each have the label %s=%s, by which the PersistentVolume %s names its node. A Job could run on the wrong node, so none is created",
			strings.Join(nodes, " and "), corev1.LabelHostname, host, pv),
		fmt.Sprintf("set the label of each node that does not have the volume to its own name: kubectl label --overwrite node NODE %s=NODE. Check who changed the label: "+
			"a kubelet can set it itself", corev1.LabelHostname),
	}
}

// NoFurtherAttempt says that nothing is launched after the last attempt, and how an administrator asks
// for another on its Job.
func NoFurtherAttempt(attempts int, expand bool, namespace, job, retry string) string {
	until := "until the claim's request or the config changes"
	if expand {
		until = "until its PersistentVolume names another config revision, or the claim requests another size where this one was refused"
	}
	return fmt.Sprintf("no further attempt after %d, the config's max-attempts, %s, "+
		"or an administrator asks for one by %s", attempts, until, annotateJob(namespace, job, retry+"=now"))
}

// SameRequest follows NextAttempt where the request was refused: the spec of a claim that waits does
// not change any more.
const SameRequest = ", with the same request. Remedy: delete the claim, and create it anew with a request that the storage can serve"

// CorrectedSecret is what to do after a run whose fault may be in a Secret. retry is the annotation
// that asks for the next attempt. The dispatcher may read no Secret, so that it cannot see a change.
func CorrectedSecret(namespace, job, retry string) string {
	return ". Remedy: an administrator corrects the ConfigMap, which is used at once," +
		" or the Secret, and then: " + annotateJob(namespace, job, retry)
}

// FullTrash says that volumes of deleted claims use room that a run has not found. It names none of
// them: the user of a claim reads it.
func FullTrash(bytes string) Note {
	return Note{
		Cause: "Volumes of deleted claims of the class have " + bytes + ", and wait for their delete",
		Remedy: "an administrator lists them by kubectl flex trash, and deletes those that no user needs by" +
			" kubectl flex trash NAMESPACE/CLAIM --empty",
	}
}

// NextAttempt says when the next attempt starts. It may start sooner if the node was full and the
// scheduler is to select another.
func NextAttempt(pause time.Duration, selectsAgain bool) string {
	next := "next attempt in " + pause.Round(time.Second).String()
	if selectsAgain {
		next += ", or sooner if the scheduler selects another node"
	}
	return next
}

// KeptOnRecord says that a volume that another PV may stand for is kept by the record of a Job.
// uid is that of its claim, and forget the annotation that releases the record.
func KeptOnRecord(namespace, job, uid, forget string) Note {
	return Note{
		"the volume may be in use, so nothing deletes it",
		"kubectl delete pv pvc-" + uid + " if it exists, and " + annotateJob(namespace, job, forget) +
			". The record is then given up, and the volume stays in the storage",
	}
}

// RetainedInDoubt says that a run with policy Retain ended as if it had written the PV, and that PV
// does not exist. forget is the annotation that releases its record.
func RetainedInDoubt(namespace, job, forget string) Note {
	return Note{
		"the Job " + job + " ended with exit code 0, but its PersistentVolume does not exist. The reclaim policy is Retain, so the volume is kept",
		"delete the volume in the storage if no user needs it. Then give up the record: " + annotateJob(namespace, job, forget),
	}
}

// CouldNotStart says that the container runtime could not start the container of a run.
func CouldNotStart(why, message string) Note {
	remedy := "an administrator must correct the script, " + imageOfRun + ", or command and args in the " +
		"pod-template, in the class's ConfigMap"
	if lacksFlex.MatchString(message) {
		remedy = "the script's image has no program flex, which batches need: an administrator must add " +
			"/bin/flex of the image flex-shell to it, or remove batch-size from the class's ConfigMap"
	}
	return Note{
		fmt.Sprintf("the container runtime could not start the container (%s): %s. It has done nothing, and does not count as an attempt", why, abridge(message, mostQuoted)),
		remedy,
	}
}

// lacksFlex is how runc and crun say that an image has no program flex.
var lacksFlex = regexp.MustCompile("exec: \"flex\": executable file not found in \\$PATH|" +
	"executable file `flex` not found in \\$PATH")

// NoInterpreter says that an image lacks the interpreter of a script, by the output.
const NoInterpreter = "the image lacks the interpreter in the first line of the script: an administrator " +
	"must correct that line, or name an image that has it, in the class's ConfigMap"

// MayNotWritePVs says that, by its output, a container was refused what every container needs that
// writes its PV. A storage may have said the same words.
const MayNotWritePVs = "by its output the container may not read or write PersistentVolumes: if the API server has refused that, an administrator must bind its ServiceAccount to the " +
	"ClusterRole flex-provisioner-volumes"

// OtherArchitecture says that a program of an image may be none for its node, by the output.
const OtherArchitecture = "by its output the image, or a program in it, may be built for another " +
	"architecture than that of the node, or be a script without a first line with #!: an administrator " +
	"must correct " + imageOfRun + ", or select other nodes by kubernetes.io/arch in the config's node-selector"

// NoToken says that the container that was to write a PV had no token for the API server.
func NoToken(pv, why string) string {
	return "it could not create the PersistentVolume " + pv + ": it had no token for the API server, since " +
		why + ". An administrator must let the policy that does so pass the Jobs and pods of the config " +
		"namespace, or correct the config's pod-template"
}

// Rejected says that the kubelet did not admit the pod of a run.
func Rejected(why, message string) Note {
	return Note{
		fmt.Sprintf("the kubelet did not start the pod (%s): %s. It has done nothing, and does not count as an attempt", why, abridge(message, mostQuoted)),
		"an administrator must correct what the kubelet says of the node, or change resources or nodes in the class's ConfigMap",
	}
}

// mostQuoted is how much of a message of Kubernetes is quoted, in bytes.
const mostQuoted = 400

// abridge shortens a message of Kubernetes, so that the remedy after it fits into an event.
func abridge(message string, most int) string {
	message = strings.TrimSuffix(message, ".")
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + "…"
}

// Forged says that no PV is created from what a Job has on record. forget is the annotation that
// releases its record.
func Forged(namespace, job, revision, class, forget string) string {
	return fmt.Sprintf("no PersistentVolume is created: the Job %s/%s names the ControllerRevision %s and the class %s. That revision must be stored in the Job's "+
		"namespace, for that class, and the class must be the claim's. Another client than the dispatcher may have written the Job. Remedy: restore the "+
		"ControllerRevision if it was deleted. Otherwise give up the record: %s, and apply deploy/base/job-record-policy.yaml",
		namespace, job, revision, class, annotateJob(namespace, job, forget))
}

// UndoFails says that a claim waits until what its earlier run may have made is deleted. forget is the
// annotation that releases the record of the run.
func UndoFails(undo, outcome, namespace, job, forget string) Note {
	return Note{
		fmt.Sprintf("the volume that an earlier run may have created must be deleted before the next one, and the Job %s that deletes it failed (%s). It is tried again", undo, outcome),
		fmt.Sprintf("an administrator must correct what the events of that Job name. The present ConfigMap is used if it certainly reaches the same storage. Otherwise %s: "+
			"the next run then starts, and the volume may stay in the storage", annotateJob(namespace, job, forget)),
	}
}

// annotateJob is the command that annotates a Job, also if it was annotated for another of its claims.
// Its namespace may be unknown.
func annotateJob(namespace, job, annotation string) string {
	return fmt.Sprintf("kubectl -n %s annotate --overwrite job %s %s", cmp.Or(namespace, "NAMESPACE"), job, annotation)
}

// WrittenByNewer says that a UID is left alone since a later dispatcher has written its record.
func WrittenByNewer(namespace, job string) Note {
	return Note{
		fmt.Sprintf("the record of the Job %s/%s is of a newer release than this program, so nothing is done for the claim and its volume", cmp.Or(namespace, "NAMESPACE"), job),
		"install the newer dispatcher again, as long as this record is needed: docs/upgrade.md#back",
	}
}

// OrphanLeft says what the pod of a Job that another client has removed may have left in the storage.
func OrphanLeft(uids []string) string {
	return "its Job, which was its record, was removed by another client. A volume that the pod may have created for the claim " + strings.Join(uids, ", ") +
		" remains in the storage, unless the claim has a PersistentVolume for it: compare them before you delete it"
}
