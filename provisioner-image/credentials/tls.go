package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
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
			return nil, errors.New("the CA file (ca-file, OS_CACERT, cacert) holds no certificate in PEM")
		}
	}
	if l.ClientCert == "" && l.ClientKey == "" {
		return config, nil
	}
	pair, err := tls.X509KeyPair([]byte(l.ClientCert), []byte(l.ClientKey.Reveal()))
	if err != nil {
		return nil, errors.New("client certificate and key (cert-file and key-file) are not a pair in PEM")
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}
