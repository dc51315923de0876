-- Lanes with work, a lease or an unsettled claim; with the second value all of them.
with work as materialized (
  select e.tenant_id, e.lane, count(*) as claimable, min(e.position) as first_position,
    min(e.recorded_at) as oldest
  from ticketflow.outbox_events as e
  where e.state = 'pending' and not e.held and ($1::text is null or e.tenant_id = $1::text)
  group by e.tenant_id, e.lane
),
holds as materialized (
  select h.tenant_id, h.lane, count(*) as held_aggregates
  from ticketflow.outbox_holds as h
  where $1::text is null or h.tenant_id = $1::text
  group by h.tenant_id, h.lane
)
select l.tenant_id::text as tenant, l.lane::smallint as lane, coalesce(w.claimable, 0) as claimable,
  coalesce(h.held_aggregates, 0) as held_aggregates, w.oldest,
  case when l.leased_until > clock_timestamp() then l.leased_by end as leased_by,
  l.leased_until, l.unsettled_claims
from ticketflow.outbox_lanes as l
left join work as w on w.tenant_id = l.tenant_id and w.lane = l.lane
left join holds as h on h.tenant_id = l.tenant_id and h.lane = l.lane
where ($1::text is null or l.tenant_id = $1::text)
  and (
    $2::boolean or w.claimable > 0 or h.held_aggregates > 0 or l.unsettled_claims > 0
    or l.leased_until > clock_timestamp()
  )
order by l.tenant_id, l.lane
