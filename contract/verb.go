package contract

import "slices"

// Verb is what a run does. It is the container's last argument and FLEX_VERB.
type Verb string

// The verbs of version 1.
const (
	Provision Verb = "provision"
	Delete    Verb = "delete"
	Expand    Verb = "expand"
	List      Verb = "list"
)

// Verbs returns every verb, in the order of a volume's life.
func Verbs() []Verb { return []Verb{Provision, Delete, Expand, List} }

// Known reports whether v is a verb of this version.
func (v Verb) Known() bool { return slices.Contains(Verbs(), v) }
