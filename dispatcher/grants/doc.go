// Package grants reads ReferenceGrants, by which the owner of a namespace lets claims of others be
// cloned from it. It writes nothing. Start reading at [Grants].
package grants
