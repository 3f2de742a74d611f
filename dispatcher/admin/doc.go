// Package admin holds what an administrator runs: the check of the dispatcher's permissions at its
// start, and the uninstall command, which removes every finalizer of the dispatcher after listing
// what stays behind. Beside act it is the only package of the dispatcher that writes. It decides
// nothing about claims. Start reading at CheckAccess and Survey.
package admin
