package model

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shows are the objects of a kind as they were created, by what they were created from. Config and
// nodes are of no kind.
type shows map[shown][]metav1.Object

type shown struct {
	kind cacheOf
	state
}

// objects returns what a view shows. No test changes an object: many views show the same one.
func (w *world) objects(v *view) []metav1.Object {
	out := slices.Clone(w.once(shown{kinds, state{config: v.config, kept: v.kept, lost: v.lost}}, (*world).unowned))
	for kind, create := range [kinds]func(*world, *state) []metav1.Object{(*world).claims, (*world).pvs, (*world).jobs, (*world).pods} {
		out = append(out, w.once(shown{cacheOf(kind), v.of[kind]}, create)...)
	}
	return out
}

// once creates objects when they are first shown.
func (w *world) once(key shown, create func(*world, *state) []metav1.Object) []metav1.Object {
	out, known := w.shows[key]
	if !known {
		out = create(w, &key.state)
		w.shows[key] = out
	}
	return out
}

// unowned returns the objects that are of no kind: config and nodes.
func (w *world) unowned(s *state) []metav1.Object {
	out := append(w.fixed(s.lost), w.configMap(s.config))
	for version := range uint8(2) {
		if s.kept>>version&1 == 1 {
			out = append(out, w.revision(version))
		}
	}
	return out
}

func (w *world) claims(s *state) []metav1.Object {
	var out []metav1.Object
	if s.claim != claimGone {
		out = append(out, w.claim(s))
	}
	if s.pv.ref == refOther {
		out = append(out, otherClaim())
	}
	if w.acts&clones != 0 {
		out = append(out, sourceObjects(s.source)...)
	}
	return out
}

func (w *world) pvs(s *state) []metav1.Object {
	var out []metav1.Object
	if s.pv.exists() {
		out = append(out, w.pv(s.pv))
	}
	if s.rescue.phase != noPV {
		out = append(out, rescuedPVOf(s.rescue))
	}
	if s.beside != noneBeside {
		out = append(out, w.pvBeside(s.beside))
	}
	if s.static != noPV && !w.blind {
		out = append(out, staticPV(s.static))
	}
	return out
}

func (w *world) jobs(s *state) []metav1.Object {
	var out []metav1.Object
	for i := range s.count() {
		out = append(out, w.job(&s.jobs[i], i))
	}
	return out
}

func (w *world) pods(s *state) []metav1.Object {
	var out []metav1.Object
	for i := range s.count() {
		out = append(out, w.pod(&s.jobs[i]))
	}
	return out
}
