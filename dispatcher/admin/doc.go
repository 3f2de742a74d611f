// Package admin is what an administrator runs: the check of the dispatcher's permissions at its start, and the uninstall command, which
// releases every finalizer of the dispatcher after saying what stays behind. Beside act it is the only package that writes. Start reading
// at CheckAccess and Survey.
package admin
