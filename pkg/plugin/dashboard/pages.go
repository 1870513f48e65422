package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/plugin/dashboard/hub"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
)

// page is what a template prints.
type page struct {
	// Body is the name of the page's template, and Title its title.
	Body, Title string
	// Section is the part of the navigation that the page belongs to.
	Section   string
	HubName   string
	Namespace string
	HasQueues bool
	// Health is of what the page shows. Troubles are of what it lacks beside that.
	Health   hub.Health
	Troubles []string
	Address  *url.URL
	Now      time.Time
	Summary  view.Jobs
	Workers  []view.Worker
	Jobs     view.Jobs
	Job      view.JobPage
	Log      *logOf
	Usage    view.Usage
	Queues   view.Queues

	status int
	// polled: what the page shows changes without a change of the hub's objects.
	polled bool
	// calm: it's made again only when it's polled, as it takes much.
	calm bool
}

// logOf is the log that a Job's page shows.
type logOf struct {
	Pod, Container string
	// Source is the address of the log.
	Source string
	// Containers of the Pod.
	Containers []string
}

// page gathers what is at an address.
func (s *Server) page(ctx context.Context, address *url.URL) *page {
	p := &page{HubName: s.options.HubName, Namespace: s.hub.Namespace(), HasQueues: s.options.Queues, Address: address, Now: s.options.Clock.Now(), status: http.StatusOK}
	below := strings.TrimPrefix(address.Path, s.base)
	path := strings.Split(strings.Trim(below, "/"), "/")
	switch {
	case below == "/":
		s.workers(p)
	case len(path) == 1 && path[0] == "jobs":
		s.jobs(p)
	case len(path) == 3 && path[0] == "jobs":
		s.job(ctx, p, types.NamespacedName{Namespace: path[1], Name: path[2]})
	case len(path) == 1 && path[0] == "usage":
		s.usage(p)
	case len(path) == 1 && path[0] == "queues":
		p.Body, p.Title, p.Section, p.polled = "queues", "Queues", "queues", true
		p.Health = hub.Health{State: hub.Live}
		p.Queues = s.hub.Queues(ctx)
	default:
		p.Body, p.Title, p.status = "nothing", "Not found", http.StatusNotFound
	}
	return p
}

func (s *Server) workers(p *page) {
	p.Body, p.Title, p.Section = "workers", "Workers", "workers"
	p.Health = s.hub.WorkersHealth()
	p.Workers = view.Workers(s.hub.Workers())
	p.Summary = view.ListJobs(s.hub.Jobs(), view.Filter{}, 1, s.hub.Around(), p.Now)
	p.addTrouble("Jobs", s.hub.JobsHealth())
}

func (s *Server) jobs(p *page) {
	p.Body, p.Title, p.Section = "jobs", "Jobs", "jobs"
	p.Health = s.hub.JobsHealth()
	query := p.Address.Query()
	filter := view.Filter{
		Text: strings.TrimSpace(query.Get("q")), Namespace: query.Get("namespace"), State: query.Get("state"), Worker: query.Get("worker"),
	}
	number, _ := strconv.Atoi(query.Get("page")) // the first one otherwise
	p.Jobs = view.ListJobs(s.hub.Jobs(), filter, number, s.hub.Around(), p.Now)
	p.addTrouble("events", s.hub.EventsHealth())
}

func (s *Server) usage(p *page) {
	p.Body, p.Title, p.Section, p.polled, p.calm = "usage", "Usage", "usage", true, true
	p.Health = s.hub.JobsHealth()
	p.Usage = view.NewUsage(s.hub.Jobs(), s.hub.Workers(), p.Address.Query().Get("since"), p.Now)
	p.addTrouble("prices of the workers", s.hub.WorkersHealth())
}

func (s *Server) job(ctx context.Context, p *page, key types.NamespacedName) {
	p.Body, p.Title, p.Section = "job", key.Name, "jobs"
	p.Health = s.hub.JobsHealth()
	job := s.hub.Job(key)
	if job == nil {
		p.Body = "nojob"
		p.Job.Namespace, p.Job.Name = key.Namespace, key.Name
		if p.Health.State == hub.Live {
			p.status = http.StatusNotFound
		}
		return
	}
	in := s.hub.Details(ctx, job)
	in.Workers = s.hub.Workers()
	p.Job = view.NewJobPage(in, p.Now)
	p.polled = !p.Job.Finished
	p.Log = chosenLog(p.Address, p.Job.Pods)
}

// chosenLog is the log that the address names, of a Pod that is there.
func chosenLog(address *url.URL, pods []view.Pod) *logOf {
	query := address.Query()
	for _, pod := range pods {
		if pod.Name != query.Get("pod") || query.Get("on") != "" && pod.Worker != query.Get("on") {
			continue
		}
		container := query.Get("container")
		if container == "" && len(pod.Containers) > 0 {
			container = pod.Containers[0]
		}
		source := url.Values{"pod": {pod.Name}, "worker": {pod.Worker}, "container": {container}}
		return &logOf{Pod: pod.Name, Container: container, Containers: pod.Containers, Source: address.Path + "/log?" + source.Encode()}
	}
	return nil
}

func (p *page) addTrouble(what string, health hub.Health) {
	if health.State == hub.Forbidden || health.State == hub.Disconnected {
		p.Troubles = append(p.Troubles, what+": "+health.Message)
	}
}

// With returns the page's address with another value of a parameter, for links. A change of a
// filter leads to the first page.
func (p *page) With(name, value string) string {
	query := p.Address.Query()
	query.Del("page")
	query.Set(name, value)
	if value == "" {
		query.Del(name)
	}
	return (&url.URL{Path: p.Address.Path, RawQuery: query.Encode()}).String()
}

// Numbered is the address of another page of the list.
func (p *page) Numbered(number int) string {
	query := p.Address.Query()
	query.Set("page", strconv.Itoa(number))
	return (&url.URL{Path: p.Address.Path, RawQuery: query.Encode()}).String()
}

// WithLog is the page's address with the log of a container of a Pod; without a Pod, with none.
func (p *page) WithLog(pod, worker, container string) string {
	query := p.Address.Query()
	for name, value := range map[string]string{"pod": pod, "on": cmp.Or(worker, query.Get("on")), "container": container} {
		query.Set(name, value)
		if value == "" || pod == "" {
			query.Del(name)
		}
	}
	return (&url.URL{Path: p.Address.Path, RawQuery: query.Encode()}).String()
}
