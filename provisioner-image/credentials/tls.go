package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
)

// TLS returns the TLS configuration of the login, nil where the login does not set any.
func (l Login) TLS() (*tls.Config, error) {
	if l.CA == "" && l.ClientCert == "" && l.ClientKey == "" && !l.Insecure {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	// The administrator set tls-insecure.
	config.InsecureSkipVerify = l.Insecure
	if l.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(l.CA)) {
			return nil, errors.New("the CA file (ca-file, OS_CACERT, cacert) has no PEM certificate")
		}
	}
	if l.ClientCert == "" && l.ClientKey == "" {
		return config, nil
	}
	pair, err := tls.X509KeyPair([]byte(l.ClientCert), []byte(l.ClientKey.Reveal()))
	if err != nil {
		return nil, errors.New("client certificate and key (cert-file and key-file) are not a PEM key pair")
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// TLSFault returns why TLS does not come about, and what to correct. It returns "" for all other
// errors.
func TLSFault(err error) string {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return "the server uses http: write http://, or the port on which it uses https"
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate " + certificateFault(e.Err)
	}
	return ""
}

// certificateFault repeats no name and no address of the error, since users may read it.
func certificateFault(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "is signed by an unknown authority: name the authority's file (ca-file, OS_CACERT, cacert)"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "is not for the host name in the URL"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return "has expired or is not valid yet"
	}
	return "is not valid"
}
