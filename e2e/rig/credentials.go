package rig

import (
	"net"
	"os"
	"path/filepath"

	"github.com/jobferry/jobferry/e2e/rig/pki"
)

// Users of the control plane's components, as Kubernetes' bootstrap RBAC knows them.
const (
	userAdmin             = "admin"
	userControllerManager = "system:kube-controller-manager"
	userScheduler         = "system:kube-scheduler"
	userKwok              = "kwok"
	groupMasters          = "system:masters"
	frontProxy            = "front-proxy-client"
	kubeletClient         = "kube-apiserver-kubelet-client"
)

// credentials are a cluster's certificates, in memory and, where a component reads them from files,
// in its folder.
type credentials struct {
	authority *pki.Authority
	files     credentialFiles
}

// credentialFiles are absolute file names.
type credentialFiles struct {
	clusterCA, clusterCAKey       string
	frontProxyCA                  string
	serverCert, serverKey         string
	frontProxyCert, frontProxyKey string
	kubeletCert, kubeletKey       string // of the API server, for kubelets
	serviceAccountKey             string
}

func newCredentials(dir string, addresses []net.IP) (*credentials, error) {
	authority, err := pki.NewAuthority("cluster-ca")
	if err != nil {
		return nil, err
	}
	frontAuthority, err := pki.NewAuthority("front-proxy-ca")
	if err != nil {
		return nil, err
	}
	server, err := authority.Server(addresses,
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return nil, err
	}
	front, err := frontAuthority.Client(frontProxy)
	if err != nil {
		return nil, err
	}
	toKubelets, err := authority.Client(kubeletClient, groupMasters)
	if err != nil {
		return nil, err
	}
	signing, err := pki.SigningKey()
	if err != nil {
		return nil, err
	}
	authorityKey, err := authority.Key()
	if err != nil {
		return nil, err
	}
	w := fileWriter{dir: dir}
	c := &credentials{authority: authority, files: credentialFiles{
		clusterCA:         w.write("ca.crt", authority.PEM),
		clusterCAKey:      w.write("ca.key", authorityKey),
		frontProxyCA:      w.write("front-proxy-ca.crt", frontAuthority.PEM),
		serverCert:        w.write("server.crt", server.Certificate),
		serverKey:         w.write("server.key", server.Key),
		frontProxyCert:    w.write("front-proxy.crt", front.Certificate),
		frontProxyKey:     w.write("front-proxy.key", front.Key),
		kubeletCert:       w.write("kubelet-client.crt", toKubelets.Certificate),
		kubeletKey:        w.write("kubelet-client.key", toKubelets.Key),
		serviceAccountKey: w.write("service-account.key", signing),
	}}
	return c, w.err
}

// fileWriter writes files into one folder and keeps the first error.
type fileWriter struct {
	dir string
	err error
}

func (w *fileWriter) write(name string, content []byte) (path string) {
	path = filepath.Join(w.dir, name)
	if w.err == nil {
		w.err = os.WriteFile(path, content, 0o600)
	}
	return path
}
