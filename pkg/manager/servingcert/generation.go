package servingcert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// backdate is how long before its creation a certificate is valid: an API server's clock may be
// behind.
const backdate = time.Hour

// createdLayout is the format of the time of creation in an entry's name.
const createdLayout = "20060102T150405Z"

// entryName matches serving-<created>-<hash>.pem. The Rotator ignores other entries of the Secret.
var entryName = regexp.MustCompile(`^serving-(\d{8}T\d{6}Z)-[0-9a-f]{12}\.pem$`)

// generation is a self-signed certificate with its key.
type generation struct {
	entry   string // its name in the Secret
	created time.Time
	pair    tls.Certificate
	cert    []byte // PEM
	both    []byte // PEM, certificate and key: the entry's content
}

func (g *generation) expires() time.Time { return g.pair.Leaf.NotAfter }

// renewal is when the next generation is due.
func (g *generation) renewal() time.Time {
	return g.created.Add(g.expires().Sub(g.created) * 2 / 3)
}

// covers reports whether the certificate is valid for all names.
func (g *generation) covers(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.Contains(g.pair.Leaf.DNSNames, name)
	})
}

// newGeneration makes a key and a certificate, which isn't a certificate authority.
func newGeneration(names []string, created time.Time, lifetime time.Duration) (*generation, error) {
	created = created.UTC().Truncate(time.Second)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("serving key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "jobferry-manager", Organization: []string{"jobferry.dev"}},
		DNSNames:              names,
		NotBefore:             created.Add(-backdate),
		NotAfter:              created.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	secret, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("serving key: %w", err)
	}
	both := slices.Concat(encodeCertificate(der), secret)
	hash := sha256.Sum256(der)
	return parseGeneration(fmt.Sprintf("serving-%s-%x.pem", created.Format(createdLayout), hash[:6]), both)
}

// parseGeneration reads an entry of the Secret.
func parseGeneration(entry string, both []byte) (*generation, error) {
	match := entryName.FindStringSubmatch(entry)
	if match == nil {
		return nil, fmt.Errorf("entry %s: unknown name", entry)
	}
	created, err := time.Parse(createdLayout, match[1])
	if err != nil {
		return nil, fmt.Errorf("entry %s: %w", entry, err)
	}
	pair, err := tls.X509KeyPair(both, both)
	if err != nil {
		return nil, fmt.Errorf("entry %s: %w", entry, err)
	}
	return &generation{entry: entry, created: created, pair: pair, cert: encodeCertificate(pair.Certificate[0]), both: both}, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

// parseSecret parses the generations, oldest first, and returns the names of invalid ones.
func parseSecret(data map[string][]byte) (good []*generation, bad []string) {
	for entry, both := range data {
		if !entryName.MatchString(entry) {
			continue
		}
		if g, err := parseGeneration(entry, both); err == nil {
			good = append(good, g)
		} else {
			bad = append(bad, entry)
		}
	}
	slices.SortFunc(good, func(a, b *generation) int { return strings.Compare(a.entry, b.entry) })
	slices.Sort(bad)
	return good, bad
}

// bundle concatenates the certificates.
func bundle(generations []*generation) []byte {
	var out bytes.Buffer
	for _, g := range generations {
		out.Write(g.cert)
	}
	return out.Bytes()
}
