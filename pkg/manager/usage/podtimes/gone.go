package podtimes

// leave puts a Job that has no Pods any more at the end of those. If they are too many, it drops
// the one that has been there for longest: one of the same namespace, if that has half of all.
func (s *Store) leave(j *jobTimes) {
	j.gone, j.goneAt = s.gone.PushBack(j), s.now()
	s.goneOf[j.id.Namespace]++
	s.dropOld()
	if s.gone.Len() <= maxGone {
		return
	}
	at := s.gone.Front()
	for s.goneOf[j.id.Namespace] > maxGone/2 && at.Value.(*jobTimes).id.Namespace != j.id.Namespace {
		at = at.Next()
	}
	s.drop(at.Value.(*jobTimes))
}

// dropOld drops Jobs that are no mirrors any more. For each one that has just come, it looks at
// two, so that they go faster than they come.
func (s *Store) dropOld() {
	for range 2 {
		old := s.gone.Front().Value.(*jobTimes) // one has just come
		switch {
		case s.now().Sub(old.goneAt) < keepGone:
			return
		case s.isSeen(old.key()):
			old.goneAt = s.now()
			s.gone.MoveToBack(old.gone)
		default:
			s.drop(old)
		}
	}
}

// drop forgets a Job without Pods.
func (s *Store) drop(j *jobTimes) {
	s.back(j)
	delete(s.jobs, j.id)
}

// back takes a Job out of those without Pods.
func (s *Store) back(j *jobTimes) {
	if j.gone == nil {
		return
	}
	s.gone.Remove(j.gone)
	j.gone = nil
	if s.goneOf[j.id.Namespace]--; s.goneOf[j.id.Namespace] == 0 {
		delete(s.goneOf, j.id.Namespace)
	}
}
