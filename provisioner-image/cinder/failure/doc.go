// Package failure says what the refusals of Cinder and keystone, and requests without an answer,
// mean to the domain.
package failure
