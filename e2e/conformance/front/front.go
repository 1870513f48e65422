package front

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// maxBody bounds what is read of a namespace that is to be created.
const maxBody = 1 << 20

// Front is a server that shows two clusters as one.
type Front struct {
	hub, worker side
	token       string
	server      *httptest.Server
}

// side is one of the clusters.
type side struct {
	proxy  *httputil.ReverseProxy
	client kubernetes.Interface
}

// Serve starts a Front on a free port of loopback. The configurations are of administrators.
func Serve(hub, worker *rest.Config) (*Front, error) {
	f := &Front{token: rand.Text()}
	var errs [2]error
	f.hub, errs[0] = newSide(hub)
	f.worker, errs[1] = newSide(worker)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	f.server = httptest.NewTLSServer(f) // with HTTP/1.1, so that connections can be upgraded
	return f, nil
}

func newSide(config *rest.Config) (side, error) {
	config = rest.CopyConfig(config)
	config.NextProtos, config.ContentType = []string{"http/1.1"}, "application/json"
	target, err := url.Parse(config.Host)
	if err != nil {
		return side{}, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return side{}, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return side{}, err
	}
	return side{client: client, proxy: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization") // the transport has credentials of its own
		},
		Transport:     transport,
		FlushInterval: -1,                         // watches
		ErrorLog:      log.New(io.Discard, "", 0), // of clients that go away
	}}, nil
}

// Kubeconfig leads to the Front.
func (f *Front) Kubeconfig() ([]byte, error) {
	const name = "front"
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw})
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: f.server.URL, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: f.token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}

// Close ends the server, and all requests that still run.
func (f *Front) Close() {
	f.server.CloseClientConnections()
	f.server.Close()
}

func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch namespace := namespaceOf(r.URL.Path); {
	case r.Header.Get("Authorization") != "Bearer "+f.token:
		answer(w, nil, apierrors.NewUnauthorized("not the token of the front's kubeconfig"))
	case r.URL.Path == namespacesPath && r.Method == http.MethodPost:
		created, err := f.createNamespace(r)
		answer(w, created, err)
	case namespace != "" && r.Method == http.MethodDelete:
		err := f.worker.client.CoreV1().Namespaces().Delete(r.Context(), namespace, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			answer(w, nil, err)
			return
		}
		f.hub.proxy.ServeHTTP(w, r)
	case isOfWorker(r.URL.Path):
		f.worker.proxy.ServeHTTP(w, r)
	default:
		f.hub.proxy.ServeHTTP(w, r)
	}
}

// createNamespace creates a namespace in both clusters.
func (f *Front) createNamespace(r *http.Request) (*corev1.Namespace, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	var wanted corev1.Namespace
	if err := json.Unmarshal(body, &wanted); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("namespace: %v (clients must send JSON)", err))
	}
	metav1.SetMetaDataLabel(&wanted.ObjectMeta, v1alpha1.LabelDispatch, v1alpha1.DispatchEnabled)
	created, err := createIn(r.Context(), f.hub, &wanted)
	if err != nil {
		return nil, err
	}
	wanted.Name, wanted.GenerateName = created.Name, ""
	_, err = createIn(r.Context(), f.worker, &wanted)
	return created, err
}

func createIn(ctx context.Context, s side, wanted *corev1.Namespace) (*corev1.Namespace, error) {
	return s.client.CoreV1().Namespaces().Create(ctx, wanted, metav1.CreateOptions{})
}

// answer writes an object, or an error as API servers do.
func answer(w http.ResponseWriter, created *corev1.Namespace, err error) {
	var object any = created
	code := http.StatusCreated
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			status = apierrors.NewInternalError(err)
		}
		s := status.Status()
		s.APIVersion, s.Kind = "v1", "Status"
		object, code = s, int(s.Code)
	} else {
		created.APIVersion, created.Kind = "v1", "Namespace"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // the client is gone
}
