package volume

import (
	"cmp"
	"fmt"
)

// origin returns the ID of the volume or snapshot that the content is to be cloned from, or "".
func (s Source) origin() string { return cmp.Or(s.VolumeID, s.SnapshotID) }

// checkContent returns an error if a volume of the claim has other content than the spec asks for:
// the claim or its config has changed since the volume was made. The dispatcher undoes an attempt
// before it makes one for another source, but its record may be lost, or from a time without that
// rule. With this error the dispatcher does not take the run for one that made nothing, and so
// removes the volume when the claim is deleted.
func (v Volume) checkContent(spec Spec) error {
	asked := spec.Source.origin()
	switch {
	case v.ID == spec.Adopt:
		return nil
	case spec.Adopt != "":
		return v.otherContent("the config's key adopt assigns volume " + spec.Adopt + " to the claim")
	case v.Origin != asked:
		return v.otherContent(content(asked) + " is requested")
	default:
		return nil
	}
}

func (v Volume) otherContent(asked string) error {
	return &Error{
		Kind:  Unsuitable,
		Doing: "use volume " + v.ID + ", which an earlier run created for this claim",
		Said: fmt.Sprintf("it is %s, and %s. Remedy: delete the claim, and this volume is deleted with it; then create the claim again",
			content(v.Origin), asked),
	}
}

// content says what a volume with this origin holds.
func content(origin string) string {
	if origin == "" {
		return "an empty volume"
	}
	return "a clone of " + origin
}
