// Package controller wires the three loops: package claim, with the UIDs of claims in its queue,
// package run with Jobs, and package class. Handlers turn every change of an object into what is to
// be reconciled. The package also collects config revisions that are not used any more, and
// measures. Start reading at Controller.Run.
package controller
