package ferrytest

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/e2e/rig"
)

// Lie changes what a worker says of a Job's status.
type Lie func(*batchv1.JobStatus)

// Liar is a proxy in front of a worker's API server. It says what the API server says, but for the
// Jobs that it was given a lie for: a real API server would refuse most of them from its own Job
// controller.
type Liar struct {
	server *httptest.Server

	mu   sync.Mutex
	lies map[types.NamespacedName]Lie
}

// liars are the proxies of this process, by cluster. They run until it ends, as registrations lead
// to them.
var liars struct {
	sync.Mutex
	of map[*rig.Cluster]*Liar
}

// Liar is the proxy in front of a worker.
func (f *Ferry) Liar(worker string) *Liar {
	f.t.Helper()
	liars.Lock()
	defer liars.Unlock()
	c := f.Cluster(worker)
	if liars.of[c] == nil {
		l, err := newLiar(c.RESTConfig())
		if err != nil {
			f.t.Fatal(err)
		}
		if liars.of == nil {
			liars.of = map[*rig.Cluster]*Liar{}
		}
		liars.of[c] = l
	}
	return liars.of[c]
}

func newLiar(config *rest.Config) (*Liar, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	l := &Liar{lies: map[types.NamespacedName]Lie{}}
	l.server = httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization") // the transport has credentials of its own
			if aboutJobs(r.In.URL) {
				r.Out.Header.Set("Accept", "application/json")
				r.Out.Header.Del("Accept-Encoding") // the transport decompresses what it asked for itself
			}
		},
		Transport:      transport,
		ModifyResponse: l.modify,
		FlushInterval:  -1,
		ErrorLog:       log.New(io.Discard, "", 0), // clients that go away
	})
	return l, nil
}

// Kubeconfig leads to the worker through the liar.
func (l *Liar) Kubeconfig() ([]byte, error) {
	const name = "liar"
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.server.Certificate().Raw})
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: l.server.URL, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: "any"}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}

// Report has the liar change what it says of a Job from its next change on; nil: it says the truth
// again.
func (l *Liar) Report(namespace, name string, lie Lie) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies[types.NamespacedName{Namespace: namespace, Name: name}] = lie
}

func (l *Liar) apply(job *batchv1.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lie := l.lies[types.NamespacedName{Namespace: job.Namespace, Name: job.Name}]; lie != nil {
		lie(&job.Status)
	}
}

func aboutJobs(u *url.URL) bool {
	return strings.HasPrefix(u.Path, "/apis/batch/v1/") && strings.Contains(u.Path, "jobs")
}

func (l *Liar) modify(answer *http.Response) error {
	if !aboutJobs(answer.Request.URL) || answer.StatusCode >= http.StatusBadRequest {
		return nil
	}
	if answer.Request.URL.Query().Get("watch") != "" {
		reader, writer := io.Pipe()
		body := answer.Body
		go func() {
			defer body.Close()
			writer.CloseWithError(l.stream(body, writer))
		}()
		answer.Body = reader
		return nil
	}
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	changed, err := l.object(content)
	if err != nil {
		return err
	}
	answer.Body = io.NopCloser(bytes.NewReader(changed))
	answer.ContentLength = int64(len(changed))
	answer.Header.Set("Content-Length", strconv.Itoa(len(changed)))
	return nil
}

// stream changes the events of a watch.
func (l *Liar) stream(from io.Reader, to io.Writer) error {
	in, out := json.NewDecoder(from), json.NewEncoder(to)
	for {
		var event metav1.WatchEvent
		if err := in.Decode(&event); err != nil {
			return err
		}
		switch watch.EventType(event.Type) {
		case watch.Added, watch.Modified, watch.Deleted:
			changed, err := l.object(event.Object.Raw)
			if err != nil {
				return err
			}
			event.Object.Raw = changed
		case watch.Bookmark, watch.Error:
		}
		if err := out.Encode(&event); err != nil {
			return err
		}
	}
}

// object changes a Job or a list of Jobs.
func (l *Liar) object(content []byte) ([]byte, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(content, &kind); err != nil {
		return nil, fmt.Errorf("%w: %.100s", err, content)
	}
	switch kind.Kind {
	case "Job":
		var job batchv1.Job
		if err := json.Unmarshal(content, &job); err != nil {
			return nil, err
		}
		l.apply(&job)
		return json.Marshal(&job)
	case "JobList":
		var list batchv1.JobList
		if err := json.Unmarshal(content, &list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			l.apply(&list.Items[i])
		}
		return json.Marshal(&list)
	default:
		return content, nil
	}
}
