// Package admin holds what an administrator runs: the check of the dispatcher's permissions at its start, the uninstall
// command, which removes every finalizer of the dispatcher after listing what stays behind, and the audit, which looks for what stands for
// nothing. Beside act it is the only package that writes. It decides nothing about claims. Start reading at CheckAccess, Survey and Auditor.
package admin
