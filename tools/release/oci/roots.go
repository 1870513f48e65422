package oci

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// rootsFile is where Go looks for root certificates.
const rootsFile = "etc/ssl/certs/ca-certificates.crt"

// roots are the public root certificates of Mozilla, of the release that go.mod names. Those that
// are trusted only under a condition stay out: a file of certificates can't say it.
func roots() []byte {
	var file bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// a buffer takes all
			_ = pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return file.Bytes()
}
