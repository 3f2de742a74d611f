// Package options has the flags of the dispatcher by which it is known which claims it serves, and
// what their Jobs may do. Whoever explains a dispatcher reads them from its Deployment, with the
// same code. Start reading at Serving.
package options
