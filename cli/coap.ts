/** `svc coap`: one CoAP request to a device. The payload of the response goes to standard output; a status of 4.xx or 5.xx is a failure. */
import { Command, Option } from 'commander';
import { ContentFormat } from '../client/node.ts';
import { formatStatus, MethodCode, Status } from '../protocol/coap/index.ts';
import { type Opened, withConnection } from './client/open.ts';
import { type TargetOptions, withTarget } from './client/target.ts';
import { showWay } from './client/way.ts';
import { integer } from './frame/arguments.ts';
import { CommandError, NOT_ALLOWED, UsageError } from './frame/errors.ts';
import { readGivenFile } from './frame/given-file.ts';

interface CoapOptions extends TargetOptions {
  payload?: string;
  payloadFile?: string;
  contentFormat?: number;
}

const FORMAT_NAMES: Readonly<Record<string, number>> = {
  text: ContentFormat.TEXT_PLAIN,
  xml: ContentFormat.APPLICATION_XML,
  bytes: ContentFormat.APPLICATION_OCTET_STREAM,
  json: ContentFormat.APPLICATION_JSON,
  cbor: ContentFormat.APPLICATION_CBOR,
};

/** Formats whose payload a person can read. */
const READABLE: readonly (number | undefined)[] = [
  undefined,
  ContentFormat.TEXT_PLAIN,
  ContentFormat.APPLICATION_LINK_FORMAT,
  ContentFormat.APPLICATION_XML,
  ContentFormat.APPLICATION_JSON,
];

/** The command `svc coap`. */
export function coapCommand(): Command {
  const command = new Command('coap')
    .description('send one CoAP request to a device and print the response')
    .argument('<method>', 'GET, POST, PUT or DELETE')
    .argument('<path>', 'for example /thermostat/target')
    .option('--payload <text>', 'payload of the request')
    .option('--payload-file <file>', 'payload of the request from a file')
    .addOption(
      new Option('--content-format <format>', 'of the payload: text (default), json, xml, cbor, bytes or a number').argParser(
        contentFormat,
      ),
    );
  return withTarget(command).action(async (given: string, path: string, options: CoapOptions) => {
    const verb = method(given);
    if (!path.startsWith('/')) throw new UsageError(`the path must start with "/": ${JSON.stringify(path)}`);
    const payload = await requestPayload(options);
    await withConnection(options, (opened) => execute(opened, verb, path, payload, options.contentFormat), { brief: true });
  });
}

async function execute(
  { connection, output, signal }: Opened,
  verb: string,
  path: string,
  payload: Uint8Array | undefined,
  format: number | undefined,
): Promise<void> {
  showWay(connection, output);
  const coap = connection.createCoap(verb, path);
  if (payload !== undefined) coap.setRequestPayload(format ?? ContentFormat.TEXT_PLAIN, payload);
  await coap.execute({ signal });
  const { status, contentFormat: responseFormat, payload: bytes } = coap.getResponse();
  const body = bytes.length === 0 ? undefined : bytes;
  const text = body !== undefined && READABLE.includes(responseFormat) ? new TextDecoder().decode(body) : undefined;
  if (output.json) {
    const encoded =
      body === undefined ? {} : text !== undefined ? { payload: text } : { payloadBase64: Buffer.from(body).toString('base64') };
    output.result({ status, contentFormat: responseFormat, ...encoded }, '');
  } else if (status < 300 && body !== undefined) {
    if (text === undefined) output.bytes(body);
    else output.payload(text);
  }
  if (status < 300) return;
  const advice = status === Status.FORBIDDEN ? `; you are not allowed to ${verb} ${path}: ${NOT_ALLOWED}` : '';
  throw new CommandError(`the device answered ${formatStatus(status)}${text === undefined ? '' : `: ${text}`}${advice}`);
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
