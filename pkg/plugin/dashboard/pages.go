package dashboard

import (
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
	Worker   view.WorkerPage
	Jobs     view.Jobs
	Job      view.JobPage
	Log      *logOf
	Usage    view.Usage
	Queues   view.Queues
	// Commands of kubectl jobferry for what is shown; LogCommand is for the log.
	Commands   []command
	LogCommand string

	status int
	// polled: what the page shows changes without a change of the hub's objects.
	polled bool
	// calm: it's made again only when it's polled, as it takes much.
	calm bool
}

// page gathers what is at an address.
func (s *Server) page(ctx context.Context, address *url.URL) *page {
	p := &page{HubName: s.options.HubName, Namespace: s.hub.Namespace(), HasQueues: s.hub.HasQueues(), Address: address, Now: s.options.Clock.Now(), Health: s.hub.Health(), status: http.StatusOK}
	below := strings.TrimPrefix(address.Path, s.base)
	path := strings.Split(strings.Trim(below, "/"), "/")
	switch {
	case below == "/":
		s.workers(p)
	case len(path) == 2 && path[0] == "workers":
		s.worker(p, path[1])
	case len(path) == 1 && path[0] == "jobs":
		s.jobs(p)
	case len(path) == 3 && path[0] == "jobs":
		s.job(ctx, p, types.NamespacedName{Namespace: path[1], Name: path[2]})
	case len(path) == 1 && path[0] == "usage":
		s.usage(p)
	case len(path) == 1 && path[0] == "queues":
		p.Body, p.Title, p.Section, p.polled = "queues", "Queues", "queues", true
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
	p.Summary = view.ListJobs(s.hub.Jobs(), view.Filter{}, view.Order{}, 1, s.hub.Around(), p.Now)
	p.addTrouble("Jobs", s.hub.JobsHealth())
}

func (s *Server) worker(p *page, name string) {
	p.Body, p.Title, p.Section = "noworker", name, "workers"
	p.Health = s.hub.WorkersHealth()
	p.Worker.Name = name
	for _, w := range s.hub.Workers() {
		if w.Name == name {
			p.Body, p.Worker = "worker", view.NewWorkerPage(w)
		}
	}
	if p.Body == "noworker" && p.Health.State == hub.Live {
		p.status = http.StatusNotFound
	}
	p.listJobs(s, view.Filter{Worker: name})
	p.Commands = s.options.workerCommands(p)
	p.addTrouble("Jobs", s.hub.JobsHealth())
}

// listJobs shows the Jobs that a filter selects, in the address's order.
func (p *page) listJobs(s *Server, filter view.Filter) {
	query := p.Address.Query()
	number, _ := strconv.Atoi(query.Get("page")) // the first one otherwise
	p.Jobs = view.ListJobs(s.hub.Jobs(), filter, view.ParseOrder(query.Get("sort")), number, s.hub.Around(), p.Now)
}

func (s *Server) jobs(p *page) {
	p.Body, p.Title, p.Section = "jobs", "Jobs", "jobs"
	p.Health = s.hub.JobsHealth()
	query := p.Address.Query()
	filter := view.Filter{
		Text: strings.TrimSpace(query.Get("q")), Namespace: query.Get("namespace"), State: query.Get("state"), Worker: query.Get("worker"),
	}
	p.listJobs(s, filter)
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
	in.Workers, in.Events = s.hub.Workers(), p.Address.Query().Get("events")
	p.Job = view.NewJobPage(in, p.Now)
	p.polled = !p.Job.Finished || in.Behind
	p.Commands = s.options.jobCommands(p)
	if p.Log = chosenLog(p.Address, &in); p.Log != nil && p.Log.Missing == "" {
		p.LogCommand = s.options.logCommand(p)
	}
}

func (p *page) addTrouble(what string, health hub.Health) {
	if health.Message != "" {
		p.Troubles = append(p.Troubles, what+": "+health.Message)
	}
}

// With returns the page's address with another value of a parameter, for links. A change of a
// filter leads to the first page.
func (p *page) With(name, value string) string {
	return p.choosing(map[string]string{"page": "", name: value})
}

// Numbered is the address of another page of the list.
func (p *page) Numbered(number int) string {
	return p.choosing(map[string]string{"page": strconv.Itoa(number)})
}

// choosing is the page's address with other values of parameters. An empty one is left out.
func (p *page) choosing(values map[string]string) string {
	query := p.Address.Query()
	for name, value := range values {
		query.Set(name, value)
		if value == "" {
			query.Del(name)
		}
	}
	return (&url.URL{Path: p.Address.Path, RawQuery: query.Encode()}).String()
}
