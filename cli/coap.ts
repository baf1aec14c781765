/**
 * `svc coap`: one CoAP request to a device. The payload of the response goes to standard output; a 4.xx or 5.xx status
 * is a failure.
 */
import { Command, Option } from 'commander';
import { type Answer, ContentFormat, type ObserveOptions } from '../client/node.ts';
import { checkQuery, formatStatus, MethodCode, Status } from '../protocol/coap/index.ts';
import { type OpenConnection, withConnection } from './client/open.ts';
import { roundTrip } from './client/round-trip.ts';
import { type TargetOptions, withTarget } from './client/target.ts';
import { showWay } from './client/way.ts';
import { coapDiscoverCommand } from './coap/discover.ts';
import { observe } from './coap/observe.ts';
import { payloadDocument, payloadText, printPayload } from './coap/payload.ts';
import { integer } from './frame/arguments.ts';
import { CommandError, NOT_ALLOWED, UsageError } from './frame/errors.ts';
import { readGivenFile } from './frame/given-file.ts';

interface CoapOptions extends TargetOptions {
  payload?: string;
  payloadFile?: string;
  contentFormat?: number;
  observe?: boolean;
  count?: number;
  raw?: boolean;
}

/** ms for the cancellation of an observation to reach the device. */
const FAREWELL = 1_000;

const FORMAT_NAMES: Readonly<Record<string, number>> = {
  text: ContentFormat.TEXT_PLAIN,
  xml: ContentFormat.APPLICATION_XML,
  bytes: ContentFormat.APPLICATION_OCTET_STREAM,
  json: ContentFormat.APPLICATION_JSON,
  cbor: ContentFormat.APPLICATION_CBOR,
};

/** The command `svc coap`. */
export function coapCommand(): Command {
  const command = new Command('coap')
    .description('send one CoAP request to a device and print the response')
    .argument('<method>', 'GET, POST, PUT or DELETE')
    .argument('<path>', 'for example /thermostat/target; a query may follow: /path?name=value')
    .option('--payload <text>', 'payload of the request')
    .option('--payload-file <file>', 'payload of the request from a file')
    .addOption(
      new Option('--content-format <format>', 'format of the payload: text (default), json, xml, cbor, bytes or a number').argParser(
        contentFormat,
      ),
    )
    .option('--observe', 'print the answer and each change, until Ctrl-C')
    .addOption(new Option('--count <n>', 'with --observe: end after this number of answers').argParser(count))
    .option('--raw', 'print the payload unchanged; otherwise CBOR is shown as JSON, and at a terminal bytes as hexadecimal digits')
    .addCommand(coapDiscoverCommand());
  return withTarget(command).action(async (given: string, place: string, options: CoapOptions) => {
    const verb = method(given);
    const { path, query } = placeOf(place);
    checkOptions(verb, options);
    const payload = await requestPayload(options);
    const work = (opened: OpenConnection): Promise<void> => {
      showWay(opened.connection, opened.output);
      const content = payload === undefined ? {} : { body: payload, format: options.contentFormat ?? ContentFormat.TEXT_PLAIN };
      const request = { ...content, query, signal: opened.signal };
      return options.observe === true
        ? follow(opened, path, { ...request, method: verb === 'POST' ? 'POST' : 'GET' }, options)
        : execute(opened, opened.connection.request(verb, path, request), options);
    };
    await withConnection(options, work, { untilStopped: options.observe === true, brief: options.observe !== true });
  });
}

async function execute({ output }: OpenConnection, answered: Promise<Answer>, { raw = false }: CoapOptions): Promise<void> {
  const answer = await answered;
  const { status, format } = answer;
  if (output.json) output.result({ status, contentFormat: format, ...payloadDocument(answer) }, '');
  else if (answer.ok) printPayload(answer, output, raw);
  if (answer.ok) return;
  const text = payloadText(answer);
  const advice = status === Status.FORBIDDEN ? `; you are not allowed to do this: ${NOT_ALLOWED}` : '';
  throw new CommandError(`the device answered ${formatStatus(status)}${text === undefined ? '' : `: ${text}`}${advice}`);
}

function follow(
  { connection, environment, output, signal }: OpenConnection,
  path: string,
  request: ObserveOptions,
  { count, raw = false }: CoapOptions,
): Promise<void> {
  return observe(connection, path, request, {
    output,
    signal,
    count,
    raw,
    settled: () => roundTrip(connection, environment.clock, FAREWELL),
  });
}

function checkOptions(verb: string, { observe: observed, count, raw, json }: CoapOptions): void {
  if (observed === true && verb !== 'GET' && verb !== 'POST') throw new UsageError(`only GET and POST can be observed, not ${verb}`);
  if (count !== undefined && observed !== true) throw new UsageError('--count needs --observe');
  if (raw === true && json === true) throw new UsageError('--raw and --json exclude each other');
}

/** Splits an argument into path and query (RFC 7252 §6.4). @throws UsageError */
function placeOf(text: string): { path: string; query: readonly string[] } {
  if (!text.startsWith('/')) throw new UsageError(`the path must start with "/": ${JSON.stringify(text)}`);
  const [path = '', ...rest] = text.split('?');
  if (rest.length === 0) return { path, query: [] };
  try {
    return { path, query: checkQuery(rest.join('?').split('&').map(decodeURIComponent)) };
  } catch {
    throw new UsageError(`the query of ${JSON.stringify(text)} cannot be sent: it is name=value, with & between them, at most 512 bytes`);
  }
}

async function requestPayload({ payload, payloadFile, contentFormat }: CoapOptions): Promise<Uint8Array | undefined> {
  if (payload !== undefined && payloadFile !== undefined) throw new UsageError('--payload and --payload-file exclude each other');
  if (payload !== undefined) return new TextEncoder().encode(payload);
  if (payloadFile !== undefined) return readGivenFile(payloadFile);
  if (contentFormat !== undefined) throw new UsageError('--content-format needs --payload or --payload-file');
  return undefined;
}

function method(text: string): string {
  const verb = text.toUpperCase();
  if (!Object.hasOwn(MethodCode, verb)) throw new UsageError(`${text} is not a method: it is GET, POST, PUT or DELETE`);
  return verb;
}

function contentFormat(text: string): number {
  return FORMAT_NAMES[text] ?? integer(text, 0, 65535, 'a content format is text, json, xml, cbor, bytes or a number from 0 to 65535');
}

function count(text: string): number {
  return integer(text, 1, 1_000_000_000, 'expected a number from 1');
}
